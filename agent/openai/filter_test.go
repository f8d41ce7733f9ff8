package openai

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func filtered(src io.Reader, max int) (string, error) {
	b, err := io.ReadAll(newFilter(src, max))
	return string(b), err
}

func TestFilterGivesAnEventWithoutWaitingForMore(t *testing.T) {
	r, w := io.Pipe()
	f := newFilter(r, 1<<20)
	go func() { _, _ = io.WriteString(w, "data: {\"a\":1}\n") }() // no blank line follows
	b := make([]byte, 100)
	n, err := f.Read(b)
	if got := string(b[:n]); got != "data: d{\"a\":1}\n" || err != nil {
		t.Errorf("got %q %v", got, err)
	}
	go func() { _, _ = io.WriteString(w, "\ndata: {\"a\":2}\r") }() // the LF of CR LF is still to come
	n, err = f.Read(b)
	if got := string(b[:n]); got != "data: d{\"a\":2}\n" || err != nil {
		t.Errorf("got %q %v", got, err)
	}
	w.Close()
}

func TestFilterLimit(t *testing.T) {
	for name, body := range map[string]string{
		"one line":        "data: {\"a\":\"" + strings.Repeat("x", 1000) + "\"}\n\n",
		"no line end":     strings.Repeat("x", 1000),
		"many data lines": strings.Repeat("data: xxxxxxxxxx\n", 100),
		"a document":      "{\n" + strings.Repeat("\"x\": 1,\n", 200),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := filtered(iotest.OneByteReader(strings.NewReader(body)), 500)
			var tooLong *errTooLong
			if !errors.As(err, &tooLong) {
				t.Errorf("got %v", err)
			}
		})
	}
	if got, err := filtered(strings.NewReader(strings.Repeat(": comment\n", 1000)), 500); got != "" || err != nil {
		t.Errorf("comments count: %q %v", got, err)
	}
}

func TestFilterPassesErrorsOfTheNetwork(t *testing.T) {
	reset := errors.New("reset")
	got, err := filtered(io.MultiReader(strings.NewReader("data: {\"a\":1}\n\ndata: {\"a\""), iotest.ErrReader(reset)), 1<<20)
	if got != "data: d{\"a\":1}\n" || !errors.Is(err, reset) {
		t.Errorf("got %q %v", got, err)
	}
}

// FuzzFilter: any bytes, any split, the same events; no event holds a line
// break, so the library reads each as one line.
func FuzzFilter(f *testing.F) {
	files, err := filepath.Glob("../../testdata/sse/*.sse")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && len(b) < 4000 {
			f.Add(b, 7)
		}
	}
	f.Add([]byte("\xef\xbb"), 1)
	f.Add([]byte("event: error\rdata:x\r\rdata"), 3)
	f.Fuzz(func(t *testing.T, body []byte, cut int) {
		want, wantErr := filtered(bytes.NewReader(body), 4096)
		for line := range strings.Lines(want) {
			if !strings.HasPrefix(line, "data: ") || !strings.HasSuffix(line, "\n") || len(line) < len("data: d\n") {
				t.Fatalf("line %q", line)
			}
		}
		got, err := filtered(iotest.OneByteReader(bytes.NewReader(body)), 4096)
		if got != want || (err == nil) != (wantErr == nil) {
			t.Fatalf("byte by byte:\n%q %v\nwhole:\n%q %v", got, err, want, wantErr)
		}
		cut = max(0, min(cut, len(body)))
		got, err = filtered(&pieces{body[:cut], body[cut:]}, 4096)
		if got != want || (err == nil) != (wantErr == nil) {
			t.Fatalf("cut at %d:\n%q %v\nwhole:\n%q %v", cut, got, err, want, wantErr)
		}
	})
}
