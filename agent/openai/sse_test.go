package openai

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStreams reads each stream in testdata/sse whole, byte by byte, and cut in
// two at many places (the filter alone: at every place), and compares with the
// .json beside it.
func TestStreams(t *testing.T) {
	files, err := filepath.Glob("../../testdata/sse/*.sse")
	if err != nil || len(files) == 0 {
		t.Fatalf("no streams: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sse")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := readFile(t, file)
			got := asJSON(t, replay(t, func() io.Reader { return bytes.NewReader(data) }))
			golden := strings.TrimSuffix(file, ".sse") + ".json"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := string(readFile(t, golden)); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			one := make(pieces, 0, len(data))
			for i := range data {
				one = append(one, data[i:i+1])
			}
			if g := asJSON(t, replay(t, func() io.Reader { return &one })); g != got {
				t.Errorf("byte by byte: got %s\nwant %s", g, got)
			}
			for i := 0; i <= len(data); i += 1 + len(data)/100 {
				if g := asJSON(t, replay(t, func() io.Reader { return &pieces{data[:i], data[i:]} })); g != got {
					t.Fatalf("cut at byte %d: got %s\nwant %s", i, g, got)
				}
			}
			want, wantErr := filtered(bytes.NewReader(data), 1<<20)
			for i := 0; i <= len(data); i += 1 + len(data)/5000 {
				if g, err := filtered(&pieces{data[:i], data[i:]}, 1<<20); g != want || (err == nil) != (wantErr == nil) {
					t.Fatalf("filter, cut at byte %d: got %s %v\nwant %s %v", i, g, err, want, wantErr)
				}
			}
		})
	}
}
