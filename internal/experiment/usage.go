package experiment

import (
	"bufio"
	"bytes"
	"encoding/json"
)

// reported is usage as the provider tells it, in tokens; -1 is not reported.
// input is all that the model was given, cached the part of it that came from a
// cache, output all that it said, thoughts too.
type reported struct{ input, output, cached int }

// usageIn finds the last usage in an answer, streamed or not, in each of the four
// wire forms.
func usageIn(answer []byte) reported {
	u := fields{}
	take := func(data []byte) {
		var v any
		if json.Unmarshal(data, &v) == nil {
			u.walk(v)
		}
	}
	if bytes.HasPrefix(bytes.TrimSpace(answer), []byte("{")) {
		take(answer)
		return u.sum()
	}
	lines := bufio.NewScanner(bytes.NewReader(answer))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:")); ok {
			take(data)
		}
	}
	return u.sum()
}

// fields are the numbers of a usage by their names; the last of each counts.
type fields map[string]int

func (u fields) walk(v any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			u.walk(x)
		}
	case map[string]any:
		for k, x := range v {
			switch k {
			case "prompt_tokens", "input_tokens", "promptTokenCount", "completion_tokens", "output_tokens", "candidatesTokenCount", "thoughtsTokenCount",
				"cached_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cachedContentTokenCount", "prompt_cache_hit_tokens":
				if n, ok := x.(float64); ok {
					u[k] = int(n)
				}
			case "usage", "usageMetadata", "prompt_tokens_details", "input_tokens_details", "message", "response":
				u.walk(x)
			}
		}
	}
}

// sum brings the forms together: the messages form counts cached input beside the
// input, Gemini thoughts beside the output, the others within.
func (u fields) sum() reported {
	first := func(names ...string) int {
		for _, n := range names {
			if v, ok := u[n]; ok {
				return v
			}
		}
		return -1
	}
	r := reported{
		input:  first("prompt_tokens", "input_tokens", "promptTokenCount"),
		output: first("completion_tokens", "output_tokens", "candidatesTokenCount"),
		cached: first("cached_tokens", "cache_read_input_tokens", "cachedContentTokenCount", "prompt_cache_hit_tokens"),
	}
	if _, within := u["prompt_tokens"]; r.input >= 0 && !within {
		r.input += u["cache_read_input_tokens"] + u["cache_creation_input_tokens"]
	}
	if r.output >= 0 {
		r.output += u["thoughtsTokenCount"]
	}
	return r
}
