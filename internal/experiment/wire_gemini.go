package experiment

import (
	"encoding/json"
	"io"
	"strings"
)

// geminiWire is generateContent of Google. Its calls have no ids: results are
// told apart by their order.
type geminiWire struct{}

func (geminiWire) parse(body []byte) (*request, error) {
	var in struct {
		System   json.RawMessage   `json:"systemInstruction"`
		Contents []json.RawMessage `json:"contents"`
		Tools    []struct {
			Functions []json.RawMessage `json:"functionDeclarations"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	r := newReading(body, "", true)
	type tool struct {
		Name        string  `json:"name"`
		Description string  `json:"description"`
		Parameters  *schema `json:"parameters"`
		JSONSchema  *schema `json:"parametersJsonSchema"`
	}
	for _, t := range in.Tools {
		offered(r, t.Functions, func(f tool) {
			def := toolDef{name: f.Name, about: f.Description}
			if f.JSONSchema != nil {
				def.schema = *f.JSONSchema
			} else if f.Parameters != nil {
				def.schema = *f.Parameters
			}
			r.tools = append(r.tools, def)
		})
	}
	r.canon.Write(in.System)
	type content struct {
		Role  string `json:"role"`
		Parts []struct {
			Text string `json:"text"`
			Call *struct {
				ID string `json:"id"`
			} `json:"functionResponse"`
		} `json:"parts"`
	}
	err := said(r, in.Contents, func(raw json.RawMessage, c content) bool {
		for _, p := range c.Parts {
			if p.Call != nil {
				r.results[p.Call.ID] = flat(raw)
			}
		}
		if c.Role == "user" {
			r.last = flat(raw)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return r.done(flat(in.System)), nil
}

func (geminiWire) open(w io.Writer, _ *request) answerer { return &geminiAnswer{w: w} }

type geminiAnswer struct {
	w      io.Writer
	now    piece
	argued strings.Builder
}

func (a *geminiAnswer) part(p m) {
	event(a.w, "", m{"candidates": []m{{"index": 0, "content": m{"role": "model", "parts": []m{p}}}}})
}
func (a *geminiAnswer) text(s string) { a.part(m{"text": s}) }
func (a *geminiAnswer) call(_ int, p piece) {
	a.now = p
	a.argued.Reset()
}

// args is kept: this form sends calls whole.
func (a *geminiAnswer) args(s string) { a.argued.WriteString(s) }
func (a *geminiAnswer) callEnd() {
	a.part(m{"functionCall": m{"id": a.now.id, "name": a.now.call, "args": json.RawMessage(a.argued.String())}})
}
func (a *geminiAnswer) end(_ int, u counted) {
	event(a.w, "", m{"candidates": []m{{"index": 0, "content": m{"role": "model", "parts": []m{{"text": ""}}}, "finishReason": "STOP"}},
		"usageMetadata": m{"promptTokenCount": u.Input, "candidatesTokenCount": u.Output, "totalTokenCount": u.Input + u.Output, "cachedContentTokenCount": u.Cached}})
}
