package parser

import (
	"fmt"
	"strings"
	"testing"
)

const sourceLine = `	if err := s.store.Save(ctx, item.Key, value); err != nil && attempts < maxAttempts {
		return fmt.Errorf("save %s: %w", item.Key, err)
	}
	for i := 0; i < len(rows); i++ { total += rows[i].Amount * rate }
`

const htmlLine = `    <div className="card" key={item.id}><h2>{item.title}</h2><p>a < b</p>
      <table><tr><td>{total}</td><td><a href="/x">more</a></td></tr></table><br/>
    </div>
`

// repeatTo repeats s up to n bytes.
func repeatTo(s string, n int) string { return strings.Repeat(s, n/len(s)+1)[:n] }

// run parses a stream in chunks of n bytes.
func run(stream string, n int) *counter {
	var s counter
	p := New(Options{}, &s)
	for ; len(stream) > n; stream = stream[n:] {
		p.Write(stream[:n])
	}
	p.Write(stream)
	p.Close("stop")
	return &s
}

func BenchmarkBody(b *testing.B) {
	for _, kind := range []struct{ name, text string }{{"source", sourceLine}, {"html", htmlLine}} {
		for _, mib := range []int{1, 8} {
			for _, chunk := range []int{4, 4096} {
				name := fmt.Sprintf("%s/%dB", kind.name, chunk)
				if chunk >= 1024 {
					name = fmt.Sprintf("%s/%dKiB", kind.name, chunk/1024)
				}
				if mib > 1 {
					name += fmt.Sprintf("/%dMiB", mib)
				}
				b.Run(name, func(b *testing.B) {
					stream := "<tf-write id=\"1\" path=\"a\">\n" + repeatTo(kind.text, mib<<20) + "\n</tf-write>\n"
					b.SetBytes(int64(mib) << 20)
					for b.Loop() {
						if run(stream, chunk).commands != 1 {
							b.Fatal("no command")
						}
					}
				})
			}
		}
	}
}

func BenchmarkEdit(b *testing.B) {
	half := repeatTo(htmlLine, 512<<10)
	stream := "<tf-edit id=\"1\" path=\"a\">\n<old>\n" + half + "\n</old>\n<new>\n" + half + "\n</new>\n</tf-edit>\n"
	b.SetBytes(1 << 20)
	for b.Loop() {
		if run(stream, 4).commands != 1 {
			b.Fatal("no command")
		}
	}
}

// BenchmarkText is plain text in 4-byte deltas; one operation is one delta.
func BenchmarkText(b *testing.B) {
	for _, kind := range []struct{ name, text string }{
		{"prose", "The answer is `x < y` in most cases, see the table below.\n- one\n- two <b>bold</b>\n"},
		{"fence", "```go\n" + sourceLine + "```\n"},
		{"html", htmlLine},
	} {
		b.Run(kind.name, func(b *testing.B) {
			text := repeatTo(kind.text, 64<<10)
			p := New(Options{}, &counter{})
			b.ReportAllocs()
			b.SetBytes(4)
			i := 0
			for b.Loop() {
				p.Write(text[i : i+4])
				i = (i + 4) % len(text)
			}
		})
	}
}

func BenchmarkCommands(b *testing.B) {
	stream := strings.Repeat("<tf-write id=\"1\" path=\"a\">\nbody\n</tf-write>\n", 10000)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		run(stream, len(stream))
	}
}

// counter is a sink that counts.
type counter struct {
	discard
	commands, errors, text int
}

func (c *counter) Text(s string)    { c.text += len(s) }
func (c *counter) Command(*Command) { c.commands++ }
func (c *counter) Error(*Error)     { c.errors++ }
