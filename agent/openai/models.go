package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"thinkflow/agent"
)

// ModelInfo is one model that the endpoint offers.
type ModelInfo = agent.ModelInfo

var _ agent.Lister = (*Client)(nil)

// modelsTimeout bounds the listing of models.
const modelsTimeout = 20 * time.Second

// Models lists the endpoint's models, sorted by id. Errors are *agent.ModelError
// or the context's.
func (c *Client) Models(ctx context.Context) ([]ModelInfo, error) {
	f := c.failure("")
	if c.badURL != nil {
		return nil, f.badURL(c.opts.BaseURL, c.badURL)
	}
	x := newExchange(ctx, nil)
	defer x.close()
	x.arm(modelsTimeout, &timeout{"no list of models", modelsTimeout})
	req, err := http.NewRequestWithContext(x.ctx, http.MethodGet, c.opts.BaseURL+"/models", nil)
	if err != nil {
		return nil, f.badURL(c.opts.BaseURL, err)
	}
	if c.opts.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Key)
	}
	resp, err := doer{c}.Do(req)
	if err != nil {
		return nil, f.of(x, err)
	}
	body, err := io.ReadAll(io.LimitReader(x.text, int64(c.opts.MaxLine)))
	_ = resp.Body.Close()
	if err != nil {
		return nil, f.of(x, err)
	}
	models, err := parseModels(body)
	if err != nil {
		return nil, f.new(agent.ErrBadResponse, fmt.Sprintf("the list of models cannot be read: %q", pageText(string(body))), "the endpoint may work all the same")
	}
	return models, nil
}

func parseModels(body []byte) ([]ModelInfo, error) {
	type wireModel struct {
		ID            lenient  `json:"id"`
		ContextLength *float64 `json:"context_length"` // OpenRouter and others
		ContextWindow *float64 `json:"context_window"` // Groq
		MaxModelLen   *float64 `json:"max_model_len"`  // vLLM, SGLang
		MaxContext    *float64 `json:"max_context_length"`
		Meta          struct {
			Context *float64 `json:"n_ctx"` // llama.cpp: what it was started with
			Train   *float64 `json:"n_ctx_train"`
		} `json:"meta"`
	}
	var list struct {
		Data []wireModel `json:"data"`
	}
	if len(body) > 0 && body[0] == '[' { // Together
		if err := json.Unmarshal(body, &list.Data); err != nil {
			return nil, err
		}
	} else if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	if list.Data == nil {
		return nil, errors.New("no data")
	}
	var out []ModelInfo
	for _, m := range list.Data {
		info := ModelInfo{ID: string(m.ID)}
		for _, n := range []*float64{m.ContextLength, m.ContextWindow, m.MaxModelLen, m.MaxContext, m.Meta.Context, m.Meta.Train} {
			if n != nil && *n > 0 {
				info.ContextTokens = int(*n)
				break
			}
		}
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b ModelInfo) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// ContextTokens is the size of the model's context as the endpoint tells it, in
// tokens; 0 = it does not. It implements agent.Sizer.
func (c *Client) ContextTokens(ctx context.Context, model string) int {
	models, err := c.Models(ctx)
	if err != nil {
		return 0
	}
	for _, m := range models {
		if m.ID == model || m.ID == model+":latest" { // Ollama's default tag
			return m.ContextTokens
		}
	}
	return 0
}

// Probe is what a test request showed.
type Probe struct {
	Endpoint string // base URL, without secrets
	Model    string
	Text     string // the answer, bounded
	Usage    *agent.TurnUsage
	// Headers, FirstToken and Total are times from the start of the request.
	Headers, FirstToken, Total time.Duration
	// Models is what the endpoint offers, nil when it does not tell. Known:
	// the model is in it. ContextTokens: size of its context, 0 = not reported.
	Models        []ModelInfo
	Known         bool
	ContextTokens int
}

// Probe sends one small request for a streaming answer and lists the models, for
// `thinkflow doctor`. What is known is filled in even when the request failed.
func (c *Client) Probe(ctx context.Context, model string) (Probe, error) {
	p := Probe{Endpoint: c.where.name, Model: model}
	if models, err := c.Models(ctx); err == nil {
		p.Models = models
		for _, m := range models {
			if m.ID == model || m.ID == model+":latest" { // Ollama's default tag
				p.Known, p.ContextTokens = true, m.ContextTokens
			}
		}
	}
	start := time.Now()
	s, err := c.Stream(ctx, &agent.Request{
		Model:     model,
		Messages:  []agent.Message{{Role: agent.RoleUser, Content: "Answer with the word ok."}},
		MaxTokens: 512, // thinking models need some to get to the word
	})
	if err != nil {
		return p, err
	}
	defer s.Close()
	if st, ok := s.(*stream); ok {
		p.Headers = st.x.headers.Sub(start)
	}
	for {
		d, err := s.Recv()
		if p.FirstToken == 0 && (d.Text != "" || d.Reasoning != "") {
			p.FirstToken = time.Since(start)
		}
		p.Text = clip(p.Text+d.Text, 200)
		if d.Usage != nil {
			p.Usage = d.Usage
		}
		if err != nil {
			p.Total = time.Since(start)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return p, err
		}
	}
}
