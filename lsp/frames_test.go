package lsp

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"thinkflow/internal/fakeeditor"
)

// TestFrames: what comes out of a byte stream, and what is answered to the rest.
func TestFrames(t *testing.T) {
	const good = `{"jsonrpc":"2.0","method":"x"}`
	rows := []struct {
		name, in string
		out      int    // good messages that pass
		says     string // in an answer
		err      error  // at the end
	}{
		{"good", fakeeditor.Frame(good) + fakeeditor.Frame(good), 2, "", io.EOF},
		{"content type", "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n" + fakeeditor.Frame(good), 1, "", io.EOF},
		{"header in other letters", strings.Replace(fakeeditor.Frame(good), "Content-Length", "content-length", 1), 1, "", io.EOF},
		{"batch", fakeeditor.Frame("[" + good + "]"), 1, "", io.EOF},
		{"response", fakeeditor.Frame(`{"jsonrpc":"2.0","id":1,"result":null}`), 1, "", io.EOF},
		{"too long, then good", fakeeditor.Frame(`{"jsonrpc":"2.0","method":"x","params":{"x":"`+strings.Repeat("y", 200)+`"}}`) + fakeeditor.Frame(good), 1, "over the limit", io.EOF},
		{"junk, then good", strings.Repeat("j", 200<<10) + "\n" + fakeeditor.Frame(good), 1, "", io.EOF},
		{"zero length", "Content-Length: 0\r\n\r\n" + fakeeditor.Frame(good), 1, "bad header", io.EOF},
		{"negative length", "Content-Length: -5\r\n\r\n" + fakeeditor.Frame(good), 1, "bad header", io.EOF},
		{"cut in the body", "Content-Length: 100\r\n\r\n{}", 0, "", io.ErrUnexpectedEOF},
		{"cut in the header", "Content-Len", 0, "", io.ErrUnexpectedEOF},
		{"nothing", "", 0, "", io.EOF},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var answers strings.Builder
			var hung error
			f := newFrames(strings.NewReader(row.in), &answers, slog.New(slog.DiscardHandler), func(err error) { hung = err })
			f.max = 150
			got, err := io.ReadAll(f)
			if n := strings.Count(string(got), "Content-Length: "); n != row.out {
				t.Errorf("%d frames, want %d: %q", n, row.out, got)
			}
			if hung != row.err || row.err == io.EOF && err != nil {
				t.Errorf("ended with %v, %v; want %v", err, hung, row.err)
			}
			if row.says == "" && answers.Len() > 0 || !strings.Contains(answers.String(), row.says) {
				t.Errorf("answers %q", answers.String())
			}
		})
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte(fakeeditor.Frame(`{"jsonrpc":"2.0","method":"x"}`)))
	f.Add([]byte("Content-Length: 5\r\n\r\n[1,2]junk\nContent-Length: 2\n\n{}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := newFrames(strings.NewReader(string(in)), io.Discard, slog.New(slog.DiscardHandler), func(error) {})
		r.max = 1 << 16
		if _, err := io.Copy(io.Discard, r); err != nil && err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
	})
}
