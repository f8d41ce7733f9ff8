package lsp

import "strings"

// landing says what became of our edits in a text that others change too.
type landing uint8

const (
	// untouched: the ranges that we wanted to replace still stand.
	untouched landing = iota
	// partly: some of our edits stand in the text and some do not.
	partly
	// other: somebody changed our ranges into something else, or our bytes stand
	// in another place.
	other
	// complete: all our bytes stand in their places.
	complete
)

// landed compares three things: the text before (old), our edits of it (sorted,
// disjoint, no no-ops), and what the client reported since (d, leading from old
// to cur). Reported changes that touch one of our edits are looked at together
// with it: the piece of text there must be what our edit makes of it, up to
// line endings and a final line break, or else hold our bytes although somebody
// typed next to them.
func landed(old string, ours []edit, d delta, cur string) landing {
	if len(ours) == 0 {
		return complete
	}
	var got, lost int
	some := false
	for _, g := range groups(old, ours, d) {
		switch g.judge(old, cur) {
		case complete:
			got += len(g.ours)
		case untouched:
		case partly:
			some = true
		default:
			lost += len(g.ours)
		}
	}
	switch {
	case got == len(ours):
		return complete
	case got > 0 || some:
		return partly
	case lost > 0 || strayed(old, ours, d, cur):
		return other
	}
	return untouched
}

// strayed reports whether the new text of one of our edits turned up where it
// does not belong: a client that checks no versions puts a stale edit in the
// wrong place. Very short texts say nothing.
func strayed(old string, ours []edit, d delta, cur string) bool {
	for _, e := range ours {
		if len(strings.TrimSpace(e.repl)) < 3 {
			continue
		}
		for _, h := range d {
			if strings.Count(cur[h.curFrom:h.curTo], e.repl) > strings.Count(old[h.from:h.to], e.repl) {
				return true
			}
		}
	}
	return false
}

// group is a stretch of old that holds some of our edits and all reported
// changes that touch them.
type group struct {
	from, to       int // bytes of old
	curFrom, curTo int // bytes of cur that stand there now
	ours           []edit
	touched        bool
}

// groups joins our edits with the hunks that touch them. Several reports of one
// edit are equal: inserting "x" before or after another "x" is the same, so an
// edit reaches as far as it could slide.
func groups(old string, ours []edit, d delta) []group {
	var out []group
	i, j := 0, 0
	for i < len(ours) {
		lo, hi := reach(old, ours[i])
		for j < len(d) && d[j].to < lo {
			j++
		}
		first := j
		g := group{from: ours[i].start, to: ours[i].end, ours: ours[i : i+1]}
		for {
			grown := false
			for j < len(d) && d[j].from <= hi {
				hi = max(hi, d[j].to)
				g.from, g.to = min(g.from, d[j].from), max(g.to, d[j].to)
				j, grown = j+1, true
			}
			if k := i + len(g.ours); k < len(ours) {
				l, h := reach(old, ours[k])
				// The next edit joins if a hunk of this group touches it.
				if j > first && l <= d[j-1].to {
					g.to = max(g.to, ours[k].end)
					hi = max(hi, h)
					g.ours = ours[i : k+1]
					grown = true
				}
			}
			if !grown {
				break
			}
		}
		g.touched = j > first
		// The ends of the group lie in no hunk but those of the group.
		g.curFrom = d.toCur(first, g.from)
		g.curTo = d.toCur(j, g.to)
		out = append(out, g)
		i += len(g.ours)
		if g.touched {
			j-- // a wide hunk may touch the next edit as well
		}
	}
	return out
}

// reach is how far an insertion or deletion could be moved without changing
// what it does to the text, as a range of old that includes the edit itself.
func reach(old string, e edit) (lo, hi int) {
	const most = 4096
	t := e.trim(old)
	lo, hi = min(e.start, t.start), max(e.end, t.end)
	switch {
	case t.start == t.end && t.repl != "":
		n := len(t.repl)
		for k := 0; k < most && t.start+k < len(old) && old[t.start+k] == t.repl[k%n]; k++ {
			hi = max(hi, t.start+k+1)
		}
		for k := 0; k < most && t.start-k-1 >= 0 && old[t.start-k-1] == t.repl[n-1-k%n]; k++ {
			lo = min(lo, t.start-k-1)
		}
	case t.repl == "" && t.start < t.end:
		for k := 0; k < most && t.end+k < len(old) && old[t.end+k] == old[t.start+k]; k++ {
			hi = max(hi, t.end+k+1)
		}
		for k := 0; k < most && t.start-k-1 >= 0 && old[t.start-k-1] == old[t.end-k-1]; k++ {
			lo = min(lo, t.start-k-1)
		}
	}
	return lo, hi
}

// judge decides about one group.
func (g group) judge(old, cur string) landing {
	if !g.touched {
		return untouched
	}
	was := old[g.from:g.to]
	is := cur[g.curFrom:g.curTo]
	local := make([]edit, len(g.ours))
	for i, e := range g.ours {
		local[i] = edit{e.start - g.from, e.end - g.from, e.repl}
	}
	want := applyEdits(was, local)
	atEnd := g.to == len(old) && g.curTo == len(cur)
	if sameText(want, is) || atEnd && sameText(want+"\n", is) {
		return complete
	}
	// Somebody typed in the same stretch, too.
	standing := standsIn(want, is, newSpans(local))
	asBefore := standsIn(was, is, oldSpans(local))
	switch {
	case standing && !asBefore:
		return complete
	case asBefore && !standing:
		return untouched
	}
	there, gone := 0, 0
	for i, sp := range newSpans(local) {
		switch old := was[local[i].start:local[i].end]; {
		case appeared(was, is, want, sp, old):
			there++
		case !remains(was, is, span{local[i].start, local[i].end}):
			gone++
		}
	}
	switch {
	case there == len(local):
		return complete
	case there > 0:
		return partly
	case gone == 0 || asBefore:
		return untouched
	}
	return other
}

// span is a range of bytes.
type span struct{ start, end int }

// newSpans are the places of the new texts after the edits.
func newSpans(edits []edit) []span {
	out := make([]span, len(edits))
	shift := 0
	for i, e := range edits {
		out[i] = span{e.start + shift, e.start + shift + len(e.repl)}
		shift += len(e.repl) - (e.end - e.start)
	}
	return out
}

func oldSpans(edits []edit) []span {
	out := make([]span, len(edits))
	for i, e := range edits {
		out[i] = span{e.start, e.end}
	}
	return out
}

// standsIn reports whether is differs from ref only outside of the spans of
// ref.
func standsIn(ref, is string, spans []span) bool {
	p := commonPrefix(ref, is)
	q := commonSuffix(ref[p:], is[p:])
	from, to := p, len(ref)-q
	for _, s := range spans {
		if from < s.end && to > s.start || from == to && from > s.start && from < s.end {
			return false
		}
	}
	return true
}

// appeared reports whether one edit left its trace although the text around it
// changed: the whole lines of its new text are there more often than before,
// or, for a deletion, the deleted text less often.
func appeared(was, is, want string, sp span, old string) bool {
	if sp.start == sp.end {
		return strings.Count(is, old) < strings.Count(was, old)
	}
	lines := wholeLines(want, sp)
	if countLines(is, lines) > countLines(was, lines) {
		return true
	}
	repl := want[sp.start:sp.end]
	return len(repl) >= 4 && strings.Count(is, repl) > strings.Count(was, repl)
}

// remains reports whether the whole lines of a range are still there, as often
// as before.
func remains(was, is string, sp span) bool {
	lines := wholeLines(was, sp)
	return strings.TrimSpace(lines) != "" && countLines(is, lines) >= countLines(was, lines)
}

// countLines counts the places where these whole lines stand in s.
func countLines(s, lines string) int {
	s, lines = "\n"+unifyEOL(s)+"\n", "\n"+strings.TrimSuffix(unifyEOL(lines), "\n")+"\n"
	n := 0
	for {
		i := strings.Index(s, lines)
		if i < 0 {
			return n
		}
		n++
		s = s[i+len(lines)-1:] // the next may begin at the line break that ends this one
	}
}

// wholeLines widens a range to whole lines, without the last line break.
func wholeLines(s string, sp span) string {
	from := strings.LastIndexByte(s[:sp.start], '\n') + 1
	to := sp.end
	if sp.end == sp.start || s[sp.end-1] != '\n' {
		if i := strings.IndexByte(s[to:], '\n'); i >= 0 {
			to += i
		} else {
			to = len(s)
		}
	}
	return s[from:to]
}

// sameText compares up to line endings: clients turn "\r\n" and lone "\r" of an
// edit into the ending of their buffer.
func sameText(a, b string) bool {
	if a == b {
		return true
	}
	return strings.ContainsRune(a+b, '\r') && unifyEOL(a) == unifyEOL(b)
}

func unifyEOL(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
