package lsp_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"thinkflow/agent"
	"thinkflow/internal/fakeeditor"
	"thinkflow/workspace"
)

// TestTypist: the agent changes every line of a document, one after the other,
// while a person types on other lines before, while and after each edit arrives,
// reported or not. As every client that checks versions: no edit is lost, doubled
// or misplaced, no typed text is lost, and nothing stays uncertain.
func TestTypist(t *testing.T) {
	for _, p := range fakeeditor.Profiles() {
		if p.Name == "minimal" {
			continue // checks no versions: what is typed while an edit travels moves it
		}
		t.Run(p.Name, func(t *testing.T) {
			for seed := range uint64(4) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { typist(t, p.Name, seed) })
			}
		})
	}
}

func typist(t *testing.T, profile string, seed uint64) {
	const lines = 30
	var s *session
	var mu sync.Mutex // guards what follows
	rng := rand.New(rand.NewPCG(seed, 11))
	typed, target := 0, 0
	person := func() {
		mu.Lock()
		defer mu.Unlock()
		for range rng.IntN(3) {
			k := rng.IntN(lines)
			if k == target {
				continue
			}
			typed++
			word := fmt.Sprintf("<t%d>", typed)
			anchor := fmt.Sprintf(" %02d.", k) // stays, whatever is done to the line
			switch rng.IntN(3) {
			case 0:
				s.Type("a.txt", anchor, word)
			case 1:
				s.Replace("a.txt", anchor, anchor+word)
			default:
				s.Replace("a.txt", anchor, anchor+word+"\n")
			}
			if rng.IntN(4) == 0 {
				s.Flush("a.txt")
			}
		}
	}
	s = start(t, config{profile: profile, editor: fakeeditor.Options{OnEdit: person}})
	var text strings.Builder
	for k := range lines {
		fmt.Fprintf(&text, "line %02d. 😀 {\n}\n", k)
	}
	s.OpenText(fileURI(s, "a.txt"), text.String())
	s.editorSide()
	s.Sync()
	order := rng.Perm(lines)
	for _, k := range order {
		mu.Lock()
		target = k
		mu.Unlock()
		person()
		old := fmt.Sprintf(" %02d.", k)
		op := workspace.Op{Kind: workspace.OpEdit, Path: "a.txt", Pairs: []workspace.Pair{{Old: old, New: old + fmt.Sprintf("[agent%02d\nwas here]", k)}}}
		var verdicts []agent.EditVerdict
		for {
			s.Sync()
			c, err := s.ws.Plan(op)
			if err != nil {
				t.Fatalf("line %d after %v: %v", k, verdicts, err)
			}
			out, err := s.apply(c)
			if err != nil {
				t.Fatal(err)
			}
			verdicts = append(verdicts, out.Verdict)
			if out.Verdict != agent.EditStale || len(verdicts) > 50 {
				break
			}
		}
		if v := verdicts[len(verdicts)-1]; v != agent.EditApplied {
			t.Fatalf("line %d: %v", k, verdicts)
		}
	}
	s.drain()
	got := s.Text("a.txt")
	if doc := s.document("a.txt"); doc.Text != got {
		t.Fatalf("the server has %.1000q, the editor %.1000q", doc.Text, got)
	}
	at := 0
	for k := range lines {
		// In order: the place in line k, then what the agent wrote there, once.
		mark := fmt.Sprintf("[agent%02d\nwas here]", k)
		for _, want := range []string{fmt.Sprintf(" %02d.", k), mark} {
			i := strings.Index(got[at:], want)
			if i < 0 || strings.Count(got, want) != 1 {
				t.Fatalf("%q is lost, doubled or misplaced in %.2000q", want, got)
			}
			at += i
		}
	}
	for j := range typed {
		if strings.Count(got, fmt.Sprintf("<t%d>", j+1)) != 1 {
			t.Fatalf("typed text %d is lost or doubled: %.2000q", j+1, got)
		}
	}
}
