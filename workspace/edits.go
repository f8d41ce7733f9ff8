package workspace

import (
	"fmt"
	"sort"
	"strings"
)

// ApplyEdits applies edits that all refer to text, in order of Start and not
// overlapping (insertions at one place apply in the given order).
func ApplyEdits(text string, edits []Edit) (string, error) {
	size := len(text)
	last := 0
	for i, e := range edits {
		if e.Start < last || e.End < e.Start || e.End > len(text) {
			return "", fmt.Errorf("edit %d (%d to %d of %d bytes) is out of order or range", i, e.Start, e.End, len(text))
		}
		last = e.End
		size += len(e.New) - (e.End - e.Start)
	}
	if len(edits) == 0 {
		return text, nil
	}
	var b strings.Builder
	b.Grow(size)
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.Start])
		b.WriteString(e.New)
		at = e.End
	}
	b.WriteString(text[at:])
	return b.String(), nil
}

// mustApply is ApplyEdits for edits that this package made itself.
func mustApply(text string, edits []Edit) string {
	out, err := ApplyEdits(text, edits)
	if err != nil {
		panic("workspace: " + err.Error())
	}
	return out
}

// mergeEdits sorts edits of one text and joins touching ones, so that no client
// can order them wrongly. Edits that change nothing are dropped.
func mergeEdits(edits []Edit) []Edit {
	sort.SliceStable(edits, func(i, j int) bool { return edits[i].Start < edits[j].Start })
	var out []Edit
	for i := 0; i < len(edits); {
		e := edits[i]
		j := i + 1
		for j < len(edits) && edits[j].Start <= e.End {
			e.End = max(e.End, edits[j].End)
			j++
		}
		if j > i+1 {
			var b strings.Builder
			for _, m := range edits[i:j] {
				b.WriteString(m.New)
			}
			e.New = b.String()
		}
		if e.Start < e.End || e.New != "" {
			out = append(out, e)
		}
		i = j
	}
	return out
}

// invertEdits returns the edits that turn the edited text back into text.
func invertEdits(text string, edits []Edit) []Edit {
	out := make([]Edit, len(edits))
	shift := 0
	for i, e := range edits {
		start := e.Start + shift
		out[i] = Edit{Start: start, End: start + len(e.New), New: text[e.Start:e.End]}
		shift += len(e.New) - (e.End - e.Start)
	}
	return out
}
