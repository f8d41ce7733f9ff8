package workspace

import (
	"crypto/sha256"
	"io/fs"
	"strings"
)

// Anchor finds one edit of an Undo again in a text that has moved on since: the
// text that the change had put there, by its beginning, length and hash, and
// what stood around it. The text itself is not kept.
type Anchor struct {
	Lead, Tail string // up to two lines before and behind, bounded
	Head       string // beginning of the inserted text
	Sum        string // first 8 bytes of its sha256
}

const (
	anchorContext = 120 // bytes of Lead and of Tail, at most
	anchorHead    = 32
	anchorSum     = 8
	// anchorTelling is how many bytes that are not blank make a text telling
	// enough to be found by itself, if it occurs once.
	anchorTelling = 24
	// maxLocate bounds the bytes that are hashed to find one text.
	maxLocate = 64 << 20
)

// anchors describes where edits of a text (Start to End is what they take away)
// stand.
func anchors(text string, edits []Edit) []Anchor {
	out := make([]Anchor, len(edits))
	for i, e := range edits {
		in := text[e.Start:e.End]
		out[i] = Anchor{Lead: leadOf(text, e.Start), Tail: tailOf(text, e.End), Head: in[:min(len(in), anchorHead)]}
		if in != "" {
			out[i].Sum = sumOf(in)
		}
	}
	return out
}

func sumOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return string(sum[:anchorSum])
}

func leadOf(text string, off int) string {
	start := off
	for range 2 {
		if start > 0 {
			start = strings.LastIndexByte(text[:start-1], '\n') + 1
		}
	}
	return text[max(start, off-anchorContext):off]
}

func tailOf(text string, off int) string {
	return text[off:min(lineOffset(text, off, 2), off+anchorContext)]
}

// Locate returns the edits that take the change back in a text that is no
// longer the one that it left: each place must be the only one that has the
// inserted text in its surroundings. ok is false when one is missing, changed
// or not the only one.
func (u Undo) Locate(text string) (edits []Edit, ok bool) {
	if u.Whole || len(u.Anchors) != len(u.Edits) {
		return nil, false
	}
	at := 0
	for i, e := range u.Edits {
		start, found := u.Anchors[i].find(text, e.End-e.Start)
		if !found || start < at {
			return nil, false
		}
		at = start + e.End - e.Start
		edits = append(edits, Edit{Start: start, End: at, New: e.New})
	}
	return edits, true
}

// find returns the one place of the inserted text of n bytes.
func (a Anchor) find(text string, n int) (start int, ok bool) {
	if n == 0 {
		return a.findGap(text)
	}
	var all, near []int // every place; those with something around that was there
	best, bestAt := 0, -1
	hashed := 0
	for i := 0; ; i++ {
		j := strings.Index(text[i:], a.Head)
		if j < 0 || i+j+n > len(text) {
			break
		}
		i += j
		if hashed += n; hashed > maxLocate {
			return 0, false
		}
		if sumOf(text[i:i+n]) != a.Sum || !a.wholeLines(text, i, i+n) {
			continue
		}
		all = append(all, i)
		score := a.score(text, i, i+n)
		if score > 0 {
			near = append(near, i)
		}
		switch {
		case score > best:
			best, bestAt = score, i
		case score == best:
			bestAt = -1
		}
	}
	switch {
	case best > 0 && bestAt >= 0 && (best == fullScore || len(near) == 1):
		return bestAt, true
	case len(all) == 1 && telling(text[all[0]:all[0]+n]) >= anchorTelling:
		return all[0], true
	}
	return 0, false
}

// wholeLines reports whether the lines that begin or end inside of the inserted
// text are still what they were: a line that somebody changed is theirs.
func (a Anchor) wholeLines(text string, start, end int) bool {
	head := a.Lead[strings.LastIndexByte(a.Lead, '\n')+1:]
	if !strings.HasSuffix(text[:start], head) || len(head) < anchorContext && !atLineStart(text, start-len(head)) {
		return false
	}
	if endsLine(text[start:end]) {
		return true
	}
	tail := firstLineOf(a.Tail)
	return strings.HasPrefix(text[end:], tail) && (endsLine(tail) || len(tail) == anchorContext || end+len(tail) == len(text))
}

// fullScore: all of the surroundings is there.
const fullScore = 4

// score tells how much of the surroundings is there: 2 for all of a side, 1 for
// the nearest line of it.
func (a Anchor) score(text string, start, end int) int {
	n := 0
	switch before := text[:start]; {
	case a.Lead == "" && start == 0, a.Lead != "" && strings.HasSuffix(before, a.Lead):
		n += 2
	case strings.HasSuffix(before, lastLine(a.Lead)) && telling(lastLine(a.Lead)) > 0:
		n++
	}
	switch behind := text[end:]; {
	case a.Tail == "" && behind == "", a.Tail != "" && strings.HasPrefix(behind, a.Tail):
		n += 2
	case strings.HasPrefix(behind, firstLineOf(a.Tail)) && telling(firstLineOf(a.Tail)) > 0:
		n++
	}
	return n
}

// findGap returns the one place where nothing stands between the surroundings.
func (a Anchor) findGap(text string) (start int, ok bool) {
	for _, pair := range [][2]string{{a.Lead, a.Tail}, {lastLine(a.Lead), firstLineOf(a.Tail)}} {
		lead, both := pair[0], pair[0]+pair[1]
		switch {
		case both == "":
			return 0, text == ""
		case lead == "" && strings.HasPrefix(text, both):
			return 0, true
		case pair[1] == "" && strings.HasSuffix(text, both):
			return len(text), true
		case lead == "" || pair[1] == "" || telling(both) < 4:
			continue
		}
		i := strings.Index(text, both)
		if i >= 0 && !strings.Contains(text[i+1:], both) {
			return i + len(lead), true
		}
	}
	return 0, false
}

// telling counts the bytes that are not blank.
func telling(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] > ' ' {
			n++
		}
	}
	return n
}

func lastLine(s string) string {
	return s[strings.LastIndexByte(strings.TrimSuffix(s, "\n"), '\n')+1:]
}

func firstLineOf(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[:i+1]
	}
	return s
}

// MapEdits moves edits of one text to where they are after other edits of it.
// ok is false when one of those changed what an edit replaces, or inserted
// something in its place.
func MapEdits(edits, through []Edit) (out []Edit, ok bool) {
	out = make([]Edit, len(edits))
	shift, k := 0, 0
	for i, e := range edits {
		for k < len(through) && through[k].End <= e.Start && !(through[k].Start == e.Start && e.Start == e.End) {
			shift += len(through[k].New) - (through[k].End - through[k].Start)
			k++
		}
		if k < len(through) && (through[k].Start < e.End || through[k].Start == e.Start) {
			return nil, false
		}
		out[i] = Edit{Start: e.Start + shift, End: e.End + shift, New: e.New}
	}
	return out, true
}

// InvertEdits returns the edits that turn the edited text back into text.
func InvertEdits(text string, edits []Edit) []Edit { return invertEdits(text, edits) }

// PlanEdits plans given edits of a file whose text has the given hash; with
// another text it is refused as changed. Nothing is matched or repaired.
func (w *Workspace) PlanEdits(path, hash string, edits []Edit) (*Change, error) {
	c := &Change{Op: Op{Kind: OpEdit, Path: path, AllowSecret: true}}
	var err error
	if c.Target, err = w.Resolve(path, AccessWrite); err != nil {
		return nil, err
	}
	if c.Before, err = w.Snapshot(c.Target); err != nil {
		return nil, err
	}
	c.Open, c.BeforeHash = c.Before.Open, c.Before.Hash
	if !c.Before.Exists || c.BeforeHash != hash {
		return nil, refuse(CodeChanged, c.Target.Display, "the file has changed meanwhile; nothing was done. Look at it again and repeat")
	}
	c.Edits = mergeEdits(append([]Edit(nil), edits...))
	if err := w.finishText(c); err != nil {
		return nil, err
	}
	return c, nil
}

// Redo is the change itself in the form of an Undo: what it takes back is that
// the change has not been made. Proposals are stored so: in a file that has
// moved on, their places are found as those of an undo are.
func (c *Change) Redo() Undo {
	u := Undo{Kind: c.Kind, Path: c.Target.Abs, BeforeHash: c.AfterHash, AfterHash: c.BeforeHash}
	if c.Dest != nil {
		u.Dest = c.Dest.Abs
	}
	switch c.Kind {
	case ChangeModify:
		u.Edits, u.Anchors = c.Edits, anchors(c.Before.Text, c.Edits)
	case ChangeCreate, ChangeCopy:
		u.Whole, u.Text, u.Mode = true, c.after, c.mode
	case ChangeDelete:
		u.Mode, u.Link = c.Before.Mode, c.link
	}
	return u
}

// Link is the target of the symbolic link that the change deletes or restores.
func (c *Change) Link() string { return c.link }

// PlanCreate plans a file with exactly this text, or a symbolic link (link not
// ""), where nothing is.
func (w *Workspace) PlanCreate(path, text, link string, mode fs.FileMode) (*Change, error) {
	u := Undo{Kind: ChangeDelete, Path: path, Whole: true, Text: text, Mode: mode, Link: link, BeforeHash: HashText(text)}
	if link != "" {
		u.BeforeHash = hashLink(link)
	}
	return w.Revert(u)
}
