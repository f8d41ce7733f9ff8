package agent

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strconv"
)

// headSummary heads the message that stands in the place of a history that was
// left out.
const headSummary = "[THINKFLOW SUMMARY]"

// Shares of the context. Room is left for the answer, and a compaction goes well
// below what fits, so that the next one is not due at once.
const (
	answerShare  = 5    // a fifth of the context, at most
	answerRoom   = 8192 // tokens, unless the configuration says more
	compactShare = 0.6
	resultShare  = 0.4
	attachShare  = 0.3
)

// cutResult is the size to which results are cut in a second step of a
// compaction, in bytes.
const cutResult = 1 << 10

// errTooLarge ends a run whose request cannot be made to fit.
type errTooLarge struct{ message string }

func (e *errTooLarge) Error() string { return e.message }

func isOverflow(err error) bool {
	var me *ModelError
	return errors.As(err, &me) && me.Kind == ErrOverflow
}

// limit is how many tokens a request may have; 0 = unknown.
func (r *run) limit(set *setup) int {
	context := set.context
	if learned := r.s.learnedContext(set.Model); learned > 0 && (context == 0 || learned < context) {
		context = learned
	}
	if context == 0 {
		return 0
	}
	room := max(set.maxOutput, min(answerRoom, context/answerShare))
	return max(context-room, context/4)
}

// resultBudget is how many bytes the results of one turn may have: what is set,
// and no more than a part of the context, or they would push out each other.
func (r *run) resultBudget(set *setup, most int, share float64) int {
	limit := r.limit(set)
	if limit == 0 {
		return most
	}
	perByte := float64(r.s.tokensFor(set.Model, 1<<20)) / (1 << 20)
	return min(most, int(float64(limit)*share/perByte))
}

// fitting is the next request, after a compaction if it would not fit otherwise.
// The error is *errTooLarge.
func (r *run) fitting(set *setup) (*Request, error) {
	req := r.request(set)
	if err := r.overflowed; err != nil { // in the middle of the last answer
		r.overflowed = nil
		return r.shrinkRefused(set, req, err)
	}
	limit := r.limit(set)
	if limit == 0 || r.s.tokensFor(set.Model, req.bytes()) <= limit {
		return req, nil
	}
	return r.compact(set, req, limit, int(float64(limit)*compactShare))
}

// shrinkRefused makes a smaller request of one that the provider refused as too
// large, once between two answers. The error is that of the provider with the
// largest parts, or nil with a request to try.
func (r *run) shrinkRefused(set *setup, req *Request, refused error) (*Request, error) {
	tokens := r.s.tokensFor(set.Model, req.bytes())
	if r.shrunk {
		return nil, &errTooLarge{fmt.Sprintf("the request does not fit, even after the conversation was shortened (%v); largest: %s", refused, r.largest(req))}
	}
	r.shrunk = true
	limit := tokens * 3 / 4
	if told := contextIn(refused); told > 0 {
		r.s.learnContext(set.Model, told)
		limit = min(limit, r.limit(set))
	}
	return r.compact(set, req, limit, limit*2/3)
}

// compact shortens the history until the request is below target, or at least
// below limit, in tokens. Nothing is asked of a model, so that the same history
// gives the same summary. What it keeps: the tasks, what was said and decided,
// the plan, open problems, the files that were touched, and as much of the end
// of the history as fits, word for word.
func (r *run) compact(set *setup, req *Request, limit, target int) (*Request, error) {
	tokens := func(q *Request) int { return r.s.tokensFor(set.Model, q.bytes()) }
	before := tokens(req)
	history := req.Messages[1:]
	best := req
	for _, step := range []struct{ cut, all bool }{{}, {cut: true}, {cut: true, all: true}} {
		places := cuts(history, step.all)
		if len(places) == 0 {
			continue
		}
		sum := r.newDigest(step.all)
		shorter := func(i int) *Request { return withHistory(req, shortened(history, places[i], sum, step.cut)) }
		// The later the cut, the smaller the request: the first that fits.
		i := sort.Search(len(places), func(i int) bool { return tokens(shorter(i)) <= target })
		next := shorter(min(i, len(places)-1))
		if next.bytes() < best.bytes() {
			best = next
		}
		if i < len(places) || tokens(next) <= limit*9/10 {
			break // words as they were are worth more than room
		}
	}
	if n := tokens(best); best != req && n <= limit {
		r.compacted(best.Messages[1:], before, n)
		return best, nil
	}
	return nil, &errTooLarge{fmt.Sprintf("the request has about %d tokens, %d fit, and the conversation cannot be shortened enough; largest: %s. Give less at once, or set context_tokens if the model takes more", before, limit, r.largest(best))}
}

// compacted makes the shortened history the session's own.
func (r *run) compacted(next []Message, before, after int) {
	r.s.replace(next)
	r.s.learn(next[0].Content, "a summary of the conversation")
	reason := fmt.Sprintf("the conversation was shortened from about %d to %d tokens", before, after)
	r.emit.emit(Event{Type: Compaction, Reason: reason})
}

// cuts are the places where a history may be cut: before an answer, so that
// roles alternate and no result stands without its call. all: at the very end
// too, so that nothing stays but the summary. What the model has asked for last
// is worth more than anything: without it it would only ask again.
func cuts(history []Message, all bool) []int {
	var out []int
	for i := 1; i < len(history); i++ {
		if history[i].Role == RoleAssistant {
			out = append(out, i)
		}
	}
	if all {
		out = append(out, len(history))
	}
	return out
}

// shortened is the history from a cut on, behind a summary of what stood before.
// cut: long results that stay are cut too.
func shortened(history []Message, from int, sum *digest, cut bool) []Message {
	out := []Message{{Role: RoleUser, Content: sum.of(history[from:])}}
	for _, m := range history[from:] {
		if cut && len(m.Content) > cutResult && (m.Role == RoleTool || m.Role == RoleUser) {
			m.Content = cutText(m.Content, cutResult)
		}
		out = append(out, m)
	}
	return out
}

// withHistory is the request with another history behind its system message.
func withHistory(req *Request, history []Message) *Request {
	own := *req
	own.Messages = append([]Message{req.Messages[0]}, history...)
	return &own
}

// replace puts a shortened history in the place of the old one.
func (s *session) replace(history []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = history
}

func (s *session) learnedContext(model string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contexts[model]
}

// learnContext keeps the size of a model's context that its server told.
func (s *session) learnContext(model string, tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contexts == nil {
		s.contexts = map[string]int{}
	}
	s.contexts[model] = tokens
}

// reContext finds the size of the context in what servers say when a request is
// too large: "maximum context length is 8192 tokens", "exceeds the available
// context size (4096 tokens)", "maximum of 131072".
var reContext = regexp.MustCompile(`(?i)(?:context (?:length|size|window)|maximum)[^0-9]{0,30}?([0-9][0-9,_]{3,9})`)

// contextIn is the size of the context that an error names, in tokens; 0 = none.
func contextIn(err error) int {
	var me *ModelError
	if !errors.As(err, &me) {
		return 0
	}
	m := reContext.FindStringSubmatch(me.Message)
	if m == nil {
		return 0
	}
	digits := ""
	for _, c := range m[1] {
		if c >= '0' && c <= '9' {
			digits += string(c)
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1000 {
		return 0
	}
	return n
}
