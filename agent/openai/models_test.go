package openai

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseModels(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"OpenAI", `{"object":"list","data":[{"id":"gpt-b","object":"model"},{"id":"gpt-a"}]}`, "[{gpt-a 0} {gpt-b 0}]"},
		{"OpenRouter", `{"data":[{"id":"z-ai/glm","context_length":200000}]}`, "[{z-ai/glm 200000}]"},
		{"vLLM", `{"data":[{"id":"q","max_model_len":32768}]}`, "[{q 32768}]"},
		{"llama.cpp", `{"models":[{"name":"x"}],"data":[{"id":"l","meta":{"n_ctx_train":131072,"n_params":7}}]}`, "[{l 131072}]"},
		{"Groq", `{"data":[{"id":"g","context_window":8192}]}`, "[{g 8192}]"},
		{"Together", `[{"id":"t","context_length":4096}]`, "[{t 4096}]"},
		{"Ollama, none pulled", `{"object":"list","data":null}`, "error"},
		{"page", `<html>`, "error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			models, err := parseModels([]byte(tt.body))
			got := fmt.Sprint(models)
			if err != nil {
				got = "error"
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	_, url := serve(t, "model m\ncontext 8192\nturn\ntext ok\nusage 9 1\nturn\nstatus 401\nturn\nstatus 500")
	c := New(Options{BaseURL: url, Key: testKey})
	p, err := c.Probe(testContext(t), "m")
	if err != nil {
		t.Fatal(err)
	}
	if p.Text != "ok" || !p.Known || p.ContextTokens != 8192 || p.Usage.Input != 9 || p.Headers <= 0 || p.FirstToken < p.Headers || p.Total < p.FirstToken || p.Endpoint != url {
		t.Errorf("got %+v", p)
	}
	p, err = c.Probe(testContext(t), "other")
	if err == nil || p.Known || len(p.Models) != 1 || !strings.Contains(err.Error(), "401") {
		t.Errorf("got %+v %v", p, err)
	}
}
