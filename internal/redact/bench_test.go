package redact

import (
	"io"
	"strings"
	"testing"
)

func BenchmarkWriter(b *testing.B) {
	r, err := New("sk-benchmark-0123456789", "another-secret-value")
	if err != nil {
		b.Fatal(err)
	}
	line := []byte(`time=2026-01-02T15:04:05Z level=INFO msg="turn started" run=abc turn=3 path=src/a.go bytes=1234` + "\n")
	b.SetBytes(int64(len(line)))
	w := NewWriter(r, io.Discard)
	for b.Loop() {
		_, _ = w.Write(line)
	}
}

func BenchmarkString(b *testing.B) {
	r, err := New("sk-benchmark-0123456789", "another-secret-value")
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("func main() { token := next(); fmt.Println(\"https://example.org/?a=b\", token) }\n", 12_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_ = r.String(text)
	}
}
