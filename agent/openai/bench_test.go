package openai

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func deltas(n int) []byte {
	var b bytes.Buffer
	for range n {
		b.WriteString(`data: {"id":"chatcmpl-B9zXW4KJ2l1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-4.1-2025-04-14","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n")
	}
	b.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	return b.Bytes()
}

func benchmarkStream(b *testing.B, c *Client, perStream int) {
	b.Helper()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		s, err := c.Stream(context.Background(), testRequest)
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = s.Recv()
			n++
		}
		if err != io.EOF {
			b.Fatal(err)
		}
		s.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/delta")
}

// BenchmarkDelta is the cost of a delta of the usual size without a network.
func BenchmarkDelta(b *testing.B) {
	body := deltas(2000)
	c := New(Options{BaseURL: testURL, HTTPClient: &http.Client{Transport: bodyTransport{open: func() io.Reader { return bytes.NewReader(body) }}}})
	benchmarkStream(b, c, 2000)
}

// BenchmarkDeltaLoopback includes the scripted server and HTTP over loopback,
// one write a delta.
func BenchmarkDeltaLoopback(b *testing.B) {
	_, url := serve(b, "turn\nrepeat\nchunk 5\ntext "+fmt.Sprintf("%q", strings.Repeat(" word", 2000)))
	benchmarkStream(b, New(Options{BaseURL: url}), 2000)
}

// BenchmarkLongLine is one event of 1 MiB.
func BenchmarkLongLine(b *testing.B) {
	body := streamOf(nil, strings.Repeat("a", 1<<20), "stop", 1)
	c := New(Options{BaseURL: testURL, HTTPClient: &http.Client{Transport: bodyTransport{open: func() io.Reader { return bytes.NewReader(body) }}}})
	b.SetBytes(1 << 20)
	benchmarkStream(b, c, 1)
}
