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
	rq := &request{body: body, stream: true, results: map[string]string{}}
	var canon, text strings.Builder
	for _, t := range in.Tools {
		for _, raw := range t.Functions {
			canon.Write(raw)
			var f struct {
				Name        string  `json:"name"`
				Description string  `json:"description"`
				Parameters  *schema `json:"parameters"`
				JSONSchema  *schema `json:"parametersJsonSchema"`
			}
			if json.Unmarshal(raw, &f) != nil {
				continue
			}
			def := toolDef{name: f.Name, about: f.Description}
			if f.JSONSchema != nil {
				def.schema = *f.JSONSchema
			} else if f.Parameters != nil {
				def.schema = *f.Parameters
			}
			rq.tools = append(rq.tools, def)
		}
	}
	canon.Write(in.System)
	for _, raw := range in.Contents {
		canon.Write(raw)
		var c struct {
			Role  string `json:"role"`
			Parts []struct {
				Text string `json:"text"`
				Call *struct {
					ID string `json:"id"`
				} `json:"functionResponse"`
			} `json:"parts"`
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, err
		}
		for _, p := range c.Parts {
			if p.Call != nil {
				rq.results[p.Call.ID] = flat(raw)
			}
		}
		if c.Role == "user" {
			rq.last = flat(raw)
		}
		text.WriteString(flat(raw))
	}
	rq.canon, rq.text = canon.String(), text.String()
	rq.finish(flat(in.System))
	return rq, nil
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
