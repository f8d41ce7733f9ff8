package lsp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.lsp.dev/protocol"

	"thinkflow/agent"
	"thinkflow/internal/fakeeditor"
	"thinkflow/workspace"
)

// BenchmarkInitialize: from Main to the reply, in-process.
func BenchmarkInitialize(b *testing.B) {
	p, err := fakeeditor.ProfileNamed("vscode")
	if err != nil {
		b.Fatal(err)
	}
	params, err := p.InitializeParams("../testdata/capabilities", "file:///ws")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		toServer, fromClient := io.Pipe()
		fromServer, toClient := io.Pipe()
		go Main(context.Background(), toServer, toClient, io.Discard, Options{})
		c := fakeeditor.NewConn(fromServer, fromClient, func(*fakeeditor.Message) {})
		call, err := c.Go("", "initialize", params)
		if err != nil {
			b.Fatal(err)
		}
		if err := call.Wait(nil); err != nil {
			b.Fatal(err)
		}
		_ = c.Close()
	}
}

// source is a text of about n bytes that looks like code, with some characters
// outside of ASCII.
func source(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "\tif err := step%d(ctx, \"größe 😀\"); err != nil {\n\t\treturn fmt.Errorf(\"step %d: %%w\", err)\n\t}\n", i, i)
	}
	return b.String()
}

// BenchmarkBuildEdit: from a change of a 100 KiB document to the bytes of the
// applyEdit request.
func BenchmarkBuildEdit(b *testing.B) {
	s := source(100 << 10)
	snap := &snapshot{text: newText(s), uri: "file:///ws/a.go", version: 3}
	facts := clientFacts{documentChanges: true}
	for _, n := range []int{1, 40} {
		var edits []workspace.Edit
		for i := range n {
			at := strings.LastIndex(s[:len(s)*(i+1)/n], "return")
			edits = append(edits, workspace.Edit{Start: at, End: at + len("return"), New: "RETURN"})
		}
		b.Run(fmt.Sprintf("edits=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				planned, err := plannedEdits(snap.text, edits)
				if err != nil {
					b.Fatal(err)
				}
				positioned, err := snap.textEdits(planned, utf16Units)
				if err != nil {
					b.Fatal(err)
				}
				e := openEdit(snap, positioned, facts)
				if _, err := protocol.Marshal(&protocol.ApplyWorkspaceEditParams{Edit: e}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDidChange: one change through the whole server, up to the answer of a
// request behind it.
func BenchmarkDidChange(b *testing.B) {
	for _, row := range []struct {
		name      string
		doc, repl int
	}{
		{"doc=100KiB/change=10B", 100 << 10, 10},
		{"doc=1MiB/change=1KiB", 1 << 20, 1 << 10},
		{"doc=1MiB/change=1MiB", 1 << 20, 1 << 20},
		{"doc=50MiB/change=1KiB", 50 << 20, 1 << 10},
	} {
		b.Run(row.name, func(b *testing.B) {
			toServer, fromClient := io.Pipe()
			fromServer, toClient := io.Pipe()
			go Main(context.Background(), toServer, toClient, io.Discard, Options{})
			c := fakeeditor.NewConn(fromServer, fromClient, func(*fakeeditor.Message) {})
			defer c.Close()
			call := func(method string, params any) {
				got, err := c.Go("", method, params)
				if err != nil {
					b.Fatal(err)
				}
				_ = got.Wait(nil)
			}
			call("initialize", map[string]any{"processId": nil, "rootUri": nil, "capabilities": map[string]any{}})
			const uri = "untitled:x"
			_ = c.Notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": uri, "languageId": "go", "version": 1, "text": source(row.doc)}})
			call("fake/sync", nil)
			repl := source(row.repl)[:row.repl]
			repl = strings.ToValidUTF8(repl, "")
			end := strings.Count(repl, "\n")
			change, err := json.Marshal(map[string]any{
				"textDocument":   map[string]any{"uri": uri, "version": 2},
				"contentChanges": []any{map[string]any{"range": fakeeditor.Range{End: fakeeditor.Position{Line: end}}, "text": repl[:strings.LastIndexByte(repl, '\n')+1]}},
			})
			if err != nil {
				b.Fatal(err)
			}
			frame := fakeeditor.Frame(`{"jsonrpc":"2.0","method":"textDocument/didChange","params":` + string(change) + `}`)
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				if err := c.Raw(frame); err != nil {
					b.Fatal(err)
				}
				call("fake/sync", nil)
			}
		})
	}
}

// BenchmarkConfirm: a change is reported for a 1 MiB document while an edit of
// it waits.
func BenchmarkConfirm(b *testing.B) {
	s := source(1 << 20)
	old := newText(s)
	at := strings.LastIndex(s, "return")
	ours := []edit{{at, at + 6, "RETURN"}}
	typed := edit{100, 100, "x"}
	next := &snapshot{text: old.replace(typed.start, typed.end, typed.repl), version: 2}
	landedNext := &snapshot{text: next.replace(at+1, at+7, "RETURN"), version: 3}
	for b.Loop() {
		c := newConfirmation(realClock{}, &snapshot{text: old}, ours, nil)
		c.changed(docEvent{cause: changed, now: next, edits: []edit{typed}})
		c.changed(docEvent{cause: changed, now: landedNext, edits: []edit{{at + 1, at + 7, "RETURN"}}})
		if c.outcome().Verdict != agent.EditApplied {
			b.Fatal("not applied")
		}
	}
}
