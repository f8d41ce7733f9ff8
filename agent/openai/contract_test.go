package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"
)

// TestLibraryVersion: the pitfalls below were found in this version; look at
// them again before raising it.
func TestLibraryVersion(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`sashabaranov/go-openai (\S+)`).FindSubmatch(mod); m == nil || string(m[1]) != "v1.43.0" {
		t.Errorf("go.mod has %q", m)
	}
}

func library(body string) *goopenai.Client {
	cfg := goopenai.DefaultConfig("k")
	cfg.BaseURL = testURL
	cfg.HTTPClient = &http.Client{Transport: bodyTransport{open: func() io.Reader { return strings.NewReader(body) }}}
	return goopenai.NewClientWithConfig(cfg)
}

// TestLibraryStreams is what the bare library makes of streams that this package
// reads rightly; testdata/sse has each of them. A row that fails means that the
// library changed, and that a way around it may go.
func TestLibraryStreams(t *testing.T) {
	tests := []struct{ file, want string }{
		{"bad-error", "error: error, capacity exhausted"},
		{"bad-error-event", "error: unexpected end of JSON input"},
		{"bad-error-after-comment", "error: unexpected end of JSON input"},
		{"bad-error-id-first", "clean end"},
		{"bad-error-blank", "clean end"},
		{"bad-clean-end", "clean end"},
		{"odd-no-last-newline", "clean end, no finish reason"},
		{"odd-many-comments", "error: stream has sent too many empty messages"},
		{"odd-several-lines", "error: unexpected end of JSON input"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			s, err := library(string(readFile(t, "../../testdata/sse/"+tt.file+".sse"))).CreateChatCompletionStream(context.Background(), goopenai.ChatCompletionRequest{Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			finish := goopenai.FinishReason("")
			for err == nil {
				var r goopenai.ChatCompletionStreamResponse
				if r, err = s.Recv(); err == nil && len(r.Choices) > 0 {
					finish += r.Choices[0].FinishReason
				}
			}
			got := "error: " + err.Error()
			if errors.Is(err, io.EOF) {
				got = "clean end"
				if finish == "" {
					got += ", no finish reason"
				}
			}
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("the library now says %q, not %q", got, tt.want)
			}
		})
	}
}

func TestLibraryRequests(t *testing.T) {
	b, err := json.Marshal(goopenai.ChatCompletionRequest{Model: "m", Messages: []goopenai.ChatCompletionMessage{
		{Role: "tool", ToolCallID: "c1"},
		{Role: "assistant", ToolCalls: []goopenai.ToolCall{{ID: "c1", Type: "function", Function: goopenai.FunctionCall{Name: "f"}}}},
		{Role: "user", Content: "<"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"model":"m","messages":[{"role":"tool","tool_call_id":"c1"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f"}}]},{"role":"user","content":"\u003c"}],"stream":false}`
	if string(b) != want {
		t.Errorf("zero values are written otherwise now: %s", b)
	}
	for name, req := range map[string]goopenai.ChatCompletionRequest{
		"limit":       {Model: "gpt-5-mini", MaxTokens: 5},
		"temperature": {Model: "o3", Temperature: 0.5},
		"old model":   {Model: "text-davinci-003"},
	} {
		if _, err := library("").CreateChatCompletionStream(context.Background(), req); err == nil {
			t.Errorf("%s: the library does not check %s any more", name, req.Model)
		}
	}
}
