package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"thinkflow/agent"
	"thinkflow/internal/scripted"
)

func TestRequestBody(t *testing.T) {
	zero := float32(0)
	msgs := []agent.Message{{Role: agent.RoleUser, Content: `<tf-write id="1">&`}}
	tests := []struct {
		name string
		opts Options
		req  agent.Request
		d    dialect
		want string
	}{
		{"plain, tags unescaped", Options{}, agent.Request{Messages: msgs}, dialect{},
			`{"model":"m","messages":[{"role":"user","content":"<tf-write id=\"1\">&"}],"stream":true,"stream_options":{"include_usage":true}}`},
		{"temperature 0 and limits", Options{}, agent.Request{Temperature: &zero, MaxTokens: 9, ReasoningEffort: "low"}, dialect{},
			`{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true},"max_tokens":9,"temperature":0,"reasoning_effort":"low"}`},
		{"OpenAI's name for the limit", Options{BaseURL: DefaultBaseURL, Key: "k"}, agent.Request{MaxTokens: 9}, dialect{},
			`{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":9}`},
		{"what the endpoint refused is left out", Options{}, agent.Request{MaxTokens: 9, Temperature: &zero}, dialect{noStreamOptions: true, noTemperature: true, completionTokens: true},
			`{"model":"m","messages":[],"stream":true,"max_completion_tokens":9}`},
		{"contents are never empty", Options{}, agent.Request{Messages: []agent.Message{
			{Role: agent.RoleUser}, {Role: agent.RoleAssistant},
			{Role: agent.RoleAssistant, ToolCalls: []agent.ToolCall{{ID: "c1", Name: "f"}, {ID: "c2", Name: `f" x="`, Arguments: `{"a":1}`}}},
			{Role: agent.RoleTool, ToolCallID: "c1"},
		}}, dialect{}, `{"model":"m","messages":[{"role":"user","content":"(no text)"},{"role":"assistant","content":"(no text)"},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"invalid_tool","arguments":"{\"a\":1}"}}]},` +
			`{"role":"tool","content":"(no output)","tool_call_id":"c1"}],"stream":true,"stream_options":{"include_usage":true}}`},
		{"reasoning goes back under the name in which it came", Options{}, agent.Request{Messages: []agent.Message{{Role: agent.RoleAssistant, Content: "a", Reasoning: "r"}}}, dialect{reasoningField: "reasoning"},
			`{"model":"m","messages":[{"role":"assistant","content":"a","reasoning":"r"}],"stream":true,"stream_options":{"include_usage":true}}`},
		{"or as reasoning_content", Options{}, agent.Request{Messages: []agent.Message{{Role: agent.RoleAssistant, Content: "a", Reasoning: "r"}}}, dialect{},
			`{"model":"m","messages":[{"role":"assistant","content":"a","reasoning_content":"r"}],"stream":true,"stream_options":{"include_usage":true}}`},
		{"tools", Options{}, agent.Request{Tools: []agent.Tool{{Name: "f", Description: "<d>", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)}, {Name: "g"}}}, dialect{},
			`{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"f","description":"<d>","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}},` +
				`{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}],"stream":true,"stream_options":{"include_usage":true}}`},
		{"extra fields: the request wins, nil removes, stream stays", Options{Extra: map[string]any{"top_k": 3, "seed": 1}},
			agent.Request{Messages: msgs, Extra: map[string]any{"seed": 2, "stream_options": nil, "stream": false, "messages": "x", "thinking": map[string]any{"type": "<on>"}}}, dialect{},
			`{"messages":[{"role":"user","content":"<tf-write id=\"1\">&"}],"model":"m","seed":2,"stream":true,"thinking":{"type":"<on>"},"top_k":3}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.opts.BaseURL == "" {
				tt.opts.BaseURL = testURL
			}
			tt.req.Model = "m"
			got, err := New(tt.opts).encode(&tt.req, tt.d)
			if err != nil || string(got) != tt.want {
				t.Errorf("got  %s %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

func TestRequestBodyErrors(t *testing.T) {
	c := New(Options{BaseURL: testURL})
	for name, req := range map[string]*agent.Request{
		"extra":  {Model: "m", Extra: map[string]any{"f": func() {}}},
		"schema": {Model: "m", Tools: []agent.Tool{{Name: "f", Parameters: json.RawMessage(`{`)}}},
	} {
		_, err := c.Stream(t.Context(), req)
		if me, ok := err.(*agent.ModelError); !ok || me.Kind != agent.ErrBadRequest || me.Retryable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHistoryIsAPrefix: what was sent once reappears byte for byte.
func TestHistoryIsAPrefix(t *testing.T) {
	sv, url := serve(t, "turn\nreasoning-alt hm\ntext <tf-touch/>\nturn\ntext b")
	c := New(Options{BaseURL: url})
	req := &agent.Request{Model: "m", Messages: []agent.Message{{Role: agent.RoleSystem, Content: "s"}, {Role: agent.RoleUser, Content: "<a>\u2028é"}}}
	for range 2 {
		s, err := c.Stream(testContext(t), req)
		if err != nil {
			t.Fatal(err)
		}
		a := collect(t, s)
		req.Messages = append(req.Messages, agent.Message{Role: agent.RoleAssistant, Content: a.Text, Reasoning: a.Reasoning}, agent.Message{Role: agent.RoleUser, Content: "go on"})
	}
	r := sv.Requests()
	if err := scripted.PrefixOf(r[0], r[1]); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(r[1].Body), `"reasoning":"hm"`) {
		t.Errorf("reasoning is not sent back as it came: %s", r[1].Body)
	}
}

// TestRefusedFieldsAreLeftOut: one refusal, then the request without the field,
// and no refusal for the next request.
func TestRefusedFieldsAreLeftOut(t *testing.T) {
	sv, url := serve(t, `
turn
status 400
body {"error":{"message":"Unrecognized request argument supplied: stream_options"}}
turn
status 422
body {"detail":[{"loc":["body","temperature"],"msg":"temperature is not supported with this model"}]}
turn
status 400
body {"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}
turn
text a
turn
text b
turn
status 400
body {"error":{"message":"temperature must be warm"}}
`)
	c := New(Options{BaseURL: url})
	temp := float32(0.5)
	req := *testRequest
	req.Temperature, req.MaxTokens = &temp, 7
	for _, want := range []string{"a", "b"} {
		s, err := c.Stream(testContext(t), &req)
		if err != nil {
			t.Fatal(err)
		}
		if a := collect(t, s); a.Text != want || a.Error != nil {
			t.Errorf("got %+v", a)
		}
	}
	const want = `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"max_completion_tokens":7}`
	for _, n := range []int{3, 4} {
		if got := string(sv.Requests()[n].Body); got != want {
			t.Errorf("request %d: %s", n, got)
		}
	}
	if _, err := c.Stream(testContext(t), &req); err == nil || len(sv.Requests()) != 6 {
		t.Errorf("a field that is not in the request was blamed: %v after %d requests", err, len(sv.Requests()))
	}
}
