package review

import (
	"fmt"
	"strings"
	"testing"

	"thinkflow/workspace"
)

// bigText is a text of n lines that all differ.
func bigText(n int, word string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d %s of a file\n", i, word)
	}
	return b.String()
}

func newBench(text string) *File {
	var last ID
	return NewFile(text, func() ID { last++; return last })
}

// BenchmarkHunks finds 10 changes in 20,000 lines of which nothing is known.
func BenchmarkHunks(b *testing.B) {
	before := bigText(20_000, "x")
	after := before
	for i := range 10 {
		after = strings.Replace(after, fmt.Sprintf("line %d x", 1000+i*1800), fmt.Sprintf("line %d changed", 1000+i*1800), 1)
	}
	for b.Loop() {
		f := newBench(before)
		f.Agent(workspace.DiffText(before, after), after, "k")
		if len(f.Hunks()) != 10 {
			b.Fatal(len(f.Hunks()))
		}
	}
}

// BenchmarkHunksAllDifferent compares 20,000 lines with 20,000 others.
func BenchmarkHunksAllDifferent(b *testing.B) {
	before, after := bigText(20_000, "x"), bigText(20_000, "y")
	for b.Loop() {
		f := newBench(before)
		f.Agent(workspace.DiffText(before, after), after, "k")
	}
}

// BenchmarkThousandEdits takes in 1,000 edits of the agent and 1,000 of a person
// in a text of 1 MiB.
func BenchmarkThousandEdits(b *testing.B) {
	text := bigText(45_000, "x")
	for b.Loop() {
		f := newBench(text)
		for i := range 1000 {
			at := strings.Index(f.text, fmt.Sprintf("line %d x", i*40))
			e := workspace.Edit{Start: at, End: at + 4, New: "LINE"}
			f.Agent([]workspace.Edit{e}, splice(f.text, e), fmt.Sprint(i))
			e = workspace.Edit{Start: at, End: at, New: "typed\n"}
			f.Sync(splice(f.text, e))
		}
		if len(f.Hunks()) != 1000 {
			b.Fatal(len(f.Hunks()))
		}
	}
}

// BenchmarkNeighbours takes in 1,000 commands that change one line each, every
// one behind the last: they grow into one hunk.
func BenchmarkNeighbours(b *testing.B) {
	text := bigText(2000, "x")
	for b.Loop() {
		f := newBench(text)
		for i := range 1000 {
			at := strings.Index(f.text, fmt.Sprintf("line %d x", i))
			e := workspace.Edit{Start: at, End: at + 4, New: "LINE"}
			f.Agent([]workspace.Edit{e}, splice(f.text, e), fmt.Sprintf("run/%d/text/1", i))
		}
		if len(f.Hunks()) != 1 {
			b.Fatal(len(f.Hunks()))
		}
	}
}

// BenchmarkRegion removes a region that holds 1,000 hunks, as a person does.
func BenchmarkRegion(b *testing.B) {
	text := bigText(4000, "x")
	var edits []workspace.Edit
	for i := range 1000 {
		at := strings.Index(text, fmt.Sprintf("line %d x", i*3+2))
		edits = append(edits, workspace.Edit{Start: at, End: at + 4, New: "LINE"})
	}
	for b.Loop() {
		f := newBench(text)
		for i, e := range edits {
			f.Agent([]workspace.Edit{e}, splice(f.text, e), fmt.Sprintf("run/%d/text/1", i))
		}
		start, end := strings.Index(f.text, "line 1 x"), strings.Index(f.text, "line 3900 x")
		e := workspace.Edit{Start: start, End: end}
		f.User([]workspace.Edit{e}, splice(f.text, e))
		if len(f.Hunks()) != 1 {
			b.Fatal(len(f.Hunks()))
		}
	}
}
