package openai

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"thinkflow/agent"
)

// ev is one event with a chat chunk whose delta is this.
func ev(delta string) string {
	return `data: {"choices":[{"index":0,"delta":` + delta + `}]}` + "\n\n"
}

// tc is an event with elements of tool_calls.
func tc(calls ...string) string { return ev(`{"tool_calls":[` + strings.Join(calls, ",") + `]}`) }

// fin ends an answer with this reason.
func fin(reason string) string {
	return `data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\ndata: [DONE]\n\n"
}

// said is an answer in one line: what was said, thought and called, how it ended.
func said(a answer) string {
	var b strings.Builder
	if a.Text != "" {
		fmt.Fprintf(&b, "text %q ", a.Text)
	}
	if a.Reasoning != "" {
		fmt.Fprintf(&b, "thought %q ", a.Reasoning)
	}
	for _, c := range a.Calls {
		if c.Name == "" {
			continue // dropped by the loop
		}
		p := agent.PrepareCall(c, a.Finish)
		fmt.Fprintf(&b, "%s %s", c.ID, p.Name)
		if p.Problem != "" {
			b.WriteString(" BAD; ")
		} else {
			fmt.Fprintf(&b, "%s; ", p.Arguments)
		}
	}
	b.WriteString(a.Finish)
	if a.Error != nil {
		fmt.Fprintf(&b, "error %s %t", a.Error.Kind, a.Error.Retryable)
	}
	return b.String()
}

// TestVariants are streams as servers send them and as they might: for each the
// same answer, however the bytes are cut. Where a server is named, its form is
// known from a report about it.
func TestVariants(t *testing.T) {
	stop := fin("stop")
	calls := fin("tool_calls")
	one := "c1 f{}; tool_calls"
	tests := []struct{ name, body, want string }{
		// Indexes.
		{"index missing, one call", tc(`{"id":"c1","function":{"name":"f","arguments":"{}"}}`) + calls, one},
		{"Gemini: index missing, two calls, finish stop", tc(`{"id":"c1","function":{"name":"f","arguments":"{}"}}`) + tc(`{"id":"c2","function":{"name":"f","arguments":"{}"}}`) + stop, "c1 f{}; c2 f{}; stop"},
		{"Gemini: two calls in one event without indexes", tc(`{"id":"c1","function":{"name":"f","arguments":"{}"}}`, `{"id":"c2","function":{"name":"g","arguments":"{}"}}`) + calls, "c1 f{}; c2 g{}; tool_calls"},
		{"Gemini: index missing, arguments in pieces", tc(`{"id":"c1","function":{"name":"f","arguments":"{\"a\":"}}`) + tc(`{"function":{"arguments":"1}"}}`) + stop, `c1 f{"a":1}; stop`},
		{"index null", tc(`{"index":null,"id":"c1","function":{"name":"f","arguments":"{}"}}`) + calls, one},
		{"index as text", tc(`{"index":"0","id":"c1","function":{"name":"f","arguments":"{"}}`) + tc(`{"index":"0","function":{"arguments":"}"}}`) + calls, one},
		{"index as a fraction", tc(`{"index":0.0,"id":"c1","function":{"name":"f","arguments":"{"}}`) + tc(`{"index":0.0,"function":{"arguments":"}"}}`) + calls, one},
		{"index negative", tc(`{"index":-1,"id":"c1","function":{"name":"f","arguments":"{"}}`) + tc(`{"index":-1,"function":{"arguments":"}"}}`) + calls, one},
		{"index huge", tc(`{"index":2147483648,"id":"c1","function":{"name":"f","arguments":"{"}}`) + tc(`{"index":2147483648,"function":{"arguments":"}"}}`) + calls, one},
		{"index beyond any number", tc(`{"index":99999999999999999999999,"id":"c1","function":{"name":"f","arguments":"{}"}}`) + calls, one},
		{"Ollama: index 0 for all calls", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":1}"}}`) + tc(`{"index":0,"id":"c2","function":{"name":"f","arguments":"{\"a\":2}"}}`) + calls, `c1 f{"a":1}; c2 f{"a":2}; tool_calls`},
		{"lmdeploy: index 0 for all, empty ids between", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":""}}`) + tc(`{"index":0,"id":"","function":{"arguments":"{}","name":null}}`) + tc(`{"index":0,"id":"c2","function":{"name":"f","arguments":""}}`) + tc(`{"index":0,"id":"","function":{"arguments":"{}","name":null}}`) + calls, "c1 f{}; c2 f{}; tool_calls"},
		{"index only on the first piece", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{"}}`) + tc(`{"function":{"arguments":"}"}}`) + calls, one},
		{"indexes from 1", tc(`{"index":1,"id":"c1","function":{"name":"f","arguments":"{}"}}`) + calls, one},
		{"two calls interleaved", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\""}}`, `{"index":1,"id":"c2","function":{"name":"g","arguments":"{\"b\""}}`) + tc(`{"index":1,"function":{"arguments":":2}"}}`, `{"index":0,"function":{"arguments":":1}"}}`) + calls, `c1 f{"a":1}; c2 g{"b":2}; tool_calls`},
		{"two calls interleaved by id, without indexes", tc(`{"id":"c1","function":{"name":"f","arguments":"{\"a\""}}`) + tc(`{"id":"c2","function":{"name":"g","arguments":"{\"b\""}}`) + tc(`{"id":"c1","function":{"arguments":":1}"}}`) + tc(`{"id":"c2","function":{"arguments":":2}"}}`) + calls, `c1 f{"a":1}; c2 g{"b":2}; tool_calls`},

		// Ids.
		{"id missing", tc(`{"index":0,"function":{"name":"f","arguments":"{}"}}`) + calls, "made-1 f{}; tool_calls"},
		{"id empty", tc(`{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}`) + calls, "made-1 f{}; tool_calls"},
		{"id null", tc(`{"index":0,"id":null,"function":{"name":"f","arguments":"{}"}}`) + calls, "made-1 f{}; tool_calls"},
		{"id a number", tc(`{"index":0,"id":7,"function":{"name":"f","arguments":"{}"}}`) + calls, "7 f{}; tool_calls"},
		{"id changes with each piece", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\""}}`) + tc(`{"index":0,"id":"c2","function":{"arguments":":1"}}`) + tc(`{"index":0,"id":"c3","function":{"arguments":"}"}}`) + calls, `c1 f{"a":1}; tool_calls`},
		{"id comes late", tc(`{"index":0,"function":{"name":"f","arguments":"{"}}`) + tc(`{"index":0,"id":"c1","function":{"arguments":"}"}}`) + calls, one},
		{"llama.cpp of 2025: id inside of function", tc(`{"index":0,"function":{"id":"c1","name":"f","arguments":"{"}}`) + tc(`{"index":0,"function":{"id":"c1","name":"f","arguments":"}"}}`) + calls, one},
		{"one id for two calls", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}`) + tc(`{"index":1,"id":"c1","function":{"name":"g","arguments":"{}"}}`) + calls, "c1 f{}; made-1 g{}; tool_calls"},

		// Names.
		{"name behind the arguments", tc(`{"index":0,"id":"c1","function":{"arguments":"{\"a\":1}"}}`) + tc(`{"index":0,"function":{"name":"f"}}`) + calls, `c1 f{"a":1}; tool_calls`},
		{"name repeated with every piece", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\""}}`) + tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":":1}"}}`) + calls, `c1 f{"a":1}; tool_calls`},
		{"name empty on later pieces", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{"}}`) + tc(`{"index":0,"id":"c1","function":{"name":"","arguments":"}"}}`) + calls, one},
		{"name in pieces", tc(`{"index":0,"id":"c1","function":{"name":"read_"}}`) + tc(`{"index":0,"function":{"name":"file"}}`) + tc(`{"index":0,"function":{"arguments":"{}"}}`) + calls, "c1 read_file{}; tool_calls"},
		{"name in pieces with the id each time", tc(`{"index":0,"id":"c1","function":{"name":"re","arguments":""}}`) + tc(`{"index":0,"id":"c1","function":{"name":"ad","arguments":""}}`) + tc(`{"index":0,"id":"c1","function":{"name":"","arguments":"{}"}}`) + calls, "c1 read{}; tool_calls"},
		{"name grows: each time the whole so far", tc(`{"index":0,"id":"c1","function":{"name":"re"}}`) + tc(`{"index":0,"id":"c1","function":{"name":"read"}}`) + tc(`{"index":0,"id":"c1","function":{"name":"read","arguments":"{}"}}`) + calls, "c1 read{}; tool_calls"},
		{"no name at all", tc(`{"index":0,"id":"c1","function":{"arguments":"{}"}}`) + calls, "tool_calls"},
		{"no function at all", tc(`{"index":0,"id":"c1","type":"function"}`) + calls, "tool_calls"},
		{"name beside function", tc(`{"index":0,"id":"c1","name":"f","arguments":"{}"}`) + calls, one},
		{"blanks around the name", tc(`{"index":0,"id":"c1","function":{"name":" f ","arguments":"{}"}}`) + calls, one},

		// Arguments.
		{"arguments an object", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":{"a":{"b":[1]}}}}`) + calls, `c1 f{"a":{"b":[1]}}; tool_calls`},
		{"arguments an empty object, then text", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":{}}}`) + calls, one},
		{"arguments missing", tc(`{"index":0,"id":"c1","function":{"name":"f"}}`) + calls, one},
		{"arguments null", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":null}}`) + calls, one},
		{"arguments the text null", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"null"}}`) + calls, one},
		{"arguments twice encoded", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"\"{\\\"a\\\":1}\""}}`) + calls, `c1 f{"a":1}; tool_calls`},
		{"arguments whole, then repeated", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":1}"}}`) + tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":1}"}}`) + calls, `c1 f{"a":1}; tool_calls`},
		{"arguments in pieces, then repeated whole", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\""}}`) + tc(`{"index":0,"function":{"arguments":":1}"}}`) + tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":1}"}}`) + calls, `c1 f{"a":1}; tool_calls`},
		{"arguments repeated with other blanks", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":1}"}}`) + tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\": 1}"}}`) + calls, `c1 f{"a":1}; tool_calls`},
		{"{} first, then the real ones", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}`) + tc(`{"index":0,"function":{"arguments":"{\"a\":1}"}}`) + calls, `c1 f{"a":1}; tool_calls`},
		{"blank pieces behind complete ones", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}`) + tc(`{"index":0,"function":{"arguments":""}}`) + tc(`{"index":0,"function":{"arguments":" \n"}}`) + calls, one},
		{"cut by length", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":\"x"}}`) + fin("length"), "c1 f BAD; length"},
		{"cut, and said to be complete", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":\"x"}}`) + calls, "c1 f BAD; tool_calls"},
		{"escapes split between events", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":\"x\\"}}`) + tc(`{"index":0,"function":{"arguments":"ny\"}"}}`) + calls, `c1 f{"a":"x\ny"}; tool_calls`},
		{"a surrogate pair split between events", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":\"\\ud83d"}}`) + tc(`{"index":0,"function":{"arguments":"\\ude00\"}"}}`) + calls, `c1 f{"a":"\ud83d\ude00"}; tool_calls`},
		{"raw UTF-8 in arguments", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":\"é😀"}}`) + tc(`{"index":0,"function":{"arguments":"ü\"}"}}`) + calls, `c1 f{"a":"é😀ü"}; tool_calls`},

		// Forms of the answer.
		{"legacy function_call", ev(`{"function_call":{"name":"f","arguments":"{\"a\":"}}`) + ev(`{"function_call":{"arguments":"1}"}}`) + fin("function_call"), `made-1 f{"a":1}; tool_calls`},
		{"legacy function_call null", ev(`{"content":"x","function_call":null,"tool_calls":null}`) + stop, `text "x" stop`},
		{"tool_calls an object", ev(`{"tool_calls":{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}}`) + calls, one},
		{"tool_calls an empty list", ev(`{"content":"x","tool_calls":[]}`) + stop, `text "x" stop`},
		{"a null among the calls", tc(`null`, `{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}`) + calls, one},
		{"content after calls", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}`) + ev(`{"content":"x"}`) + calls, `text "x" ` + one},
		{"content and call in one delta", ev(`{"content":"x","tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}]}`) + calls, `text "x" ` + one},
		{"calls in the event of the finish", `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n", one},
		{"a call behind the finish reason", `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n" + tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}`) + "data: [DONE]\n\n", one},
		{"all fields null", ev(`{"role":null,"content":null,"reasoning_content":null,"tool_calls":null,"refusal":null}`) + ev(`{"content":"x"}`) + stop, `text "x" stop`},
		{"delta null", `data: {"choices":[{"index":0,"delta":null}]}` + "\n\n" + ev(`{"content":"x"}`) + stop, `text "x" stop`},
		{"choices null", `data: {"choices":null}` + "\n\n" + ev(`{"content":"x"}`) + stop, `text "x" stop`},
		{"choice null", `data: {"choices":[null]}` + "\n\n" + ev(`{"content":"x"}`) + stop, `text "x" stop`},
		{"vMLX: empty deltas and a field of its own", `data: {"choices":[{"delta":{}}],"tool_call_generating":true}` + "\n\n" + tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}`) + calls, one},
		{"a second choice is not read", `data: {"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"x"}}]}` + "\n\n" + stop, `text "x" stop`},
		{"content a list of parts", ev(`{"content":[{"type":"text","text":"x"},{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`) + stop, `text "x" thought "hm" stop`},
		{"content a number", ev(`{"content":4}`) + stop, `text "4" stop`},
		{"usage with empty choices last", ev(`{"content":"x"}`) + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" + `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n\ndata: [DONE]\n\n", `text "x" stop`},
		{"usage in every event", `data: {"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n\n" + stop, `text "x" stop`},
		{"no stream: a whole answer", `{"choices":[{"index":0,"message":{"content":"x","tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, `text "x" ` + one},

		// Thinking.
		{"reasoning_content", ev(`{"reasoning_content":"hm"}`) + ev(`{"content":"x"}`) + stop, `text "x" thought "hm" stop`},
		{"reasoning", ev(`{"reasoning":"hm"}`) + ev(`{"content":"x"}`) + stop, `text "x" thought "hm" stop`},
		{"both with the same", ev(`{"reasoning":"hm","reasoning_content":"hm"}`) + ev(`{"content":"x"}`) + stop, `text "x" thought "hm" stop`},
		{"thinking", ev(`{"thinking":"hm"}`) + ev(`{"content":"x"}`) + stop, `text "x" thought "hm" stop`},
		{"thinking_content", ev(`{"thinking_content":"hm"}`) + ev(`{"content":"x"}`) + stop, `text "x" thought "hm" stop`},
		{"reasoning_text", ev(`{"reasoning_text":"hm"}`) + ev(`{"content":"x"}`) + stop, `text "x" thought "hm" stop`},
		{"reasoning an object", ev(`{"reasoning":{"content":"hm"}}`) + ev(`{"content":"x"}`) + stop, `text "x" thought "hm" stop`},
		{"OpenRouter: reasoning_details alone", ev(`{"reasoning_details":[{"type":"reasoning.text","text":"hm"}]}`) + ev(`{"content":"x"}`) + stop, `text "x" thought "hm" stop`},
		{"OpenRouter: a summary in reasoning_details", ev(`{"reasoning_details":[{"type":"reasoning.summary","summary":"hm"}]}`) + ev(`{"content":"x"}`) + stop, `text "x" thought "hm" stop`},
		{"thought after the text", ev(`{"content":"x"}`) + ev(`{"reasoning_content":"hm"}`) + stop, `text "x" thought "hm" stop`},

		// Framing.
		{"CR LF", strings.ReplaceAll(ev(`{"content":"x"}`)+stop, "\n", "\r\n"), `text "x" stop`},
		{"CR alone", strings.ReplaceAll(ev(`{"content":"x"}`)+stop, "\n", "\r"), `text "x" stop`},
		{"a byte order mark", "\xef\xbb\xbf" + ev(`{"content":"x"}`) + stop, `text "x" stop`},
		{"comments between and inside", ": OPENROUTER PROCESSING\n\n" + ":\n" + ev(`{"content":"x"}`) + ": ping\n: ping\n\n" + stop, `text "x" stop`},
		{"one event over several data lines", "data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"x\"}}]}\n\n" + stop, `text "x" stop`},
		{"no blank after the colon", strings.ReplaceAll(ev(`{"content":"x"}`)+stop, "data: ", "data:"), `text "x" stop`},
		{"two blanks after the colon", strings.ReplaceAll(ev(`{"content":"x"}`)+stop, "data: ", "data:  "), `text "x" stop`},
		{"event, id and retry lines", "event: message\nid: 1\nretry: 10\n" + ev(`{"content":"x"}`) + stop, `text "x" stop`},
		{"the data before the event's name", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\nevent: chunk\n\n" + stop, `text "x" stop`},
		{"no blank lines", strings.ReplaceAll(ev(`{"content":"x"}`)+stop, "\n\n", "\n"), `text "x" stop`},
		{"empty data", "data:\n\ndata: \n\n" + ev(`{"content":"x"}`) + stop, `text "x" stop`},
		{"lines of JSON without data", strings.ReplaceAll(ev(`{"content":"x"}`)+strings.TrimSuffix(stop, "data: [DONE]\n\n"), "data: ", ""), `text "x" stop`},
		{"[DONE] missing", ev(`{"content":"x"}`) + strings.TrimSuffix(stop, "data: [DONE]\n\n"), `text "x" stop`},
		{"[DONE] without a finish reason", ev(`{"content":"x"}`) + "data: [DONE]\n\n", `text "x" `},
		{"[DONE] with blanks", ev(`{"content":"x"}`) + strings.Replace(stop, "[DONE]", " [DONE] ", 1), `text "x" stop`},
		{"[done] in small letters", ev(`{"content":"x"}`) + strings.Replace(stop, "[DONE]", "[done]", 1), `text "x" stop`},
		{"[DONE] as a string", ev(`{"content":"x"}`) + strings.Replace(stop, "[DONE]", `"[DONE]"`, 1), `text "x" stop`},
		{"[DONE] twice, and something behind it", ev(`{"content":"x"}`) + stop + "data: [DONE]\n\n" + ev(`{"content":"late"}`), `text "x" stop`},
		{"no line break at the end", strings.TrimSpace(ev(`{"content":"x"}`) + stop), `text "x" stop`},
		{"a surrogate pair in the text", ev(`{"content":"\ud83d\ude00"}`) + stop, `text "😀" stop`},
		{"half a surrogate pair", ev(`{"content":"a\ud83d"}`) + ev(`{"content":"\ude00b"}`) + stop, `text "a😀b" stop`},
		{"text cut in the middle of a rune by the server", ev("{\"content\":\"a\xc3\"}") + ev("{\"content\":\"\xa9b\"}") + stop, `text "aéb" stop`},

		// Finish reasons.
		{"finish reason in capitals", ev(`{"content":"x"}`) + fin("STOP"), `text "x" stop`},
		{"finish reason end_turn", ev(`{"content":"x"}`) + fin("end_turn"), `text "x" stop`},
		{"finish reason MAX_TOKENS", ev(`{"content":"x"}`) + fin("MAX_TOKENS"), `text "x" length`},
		{"finish reason SAFETY", ev(`{"content":"x"}`) + fin("SAFETY"), `text "x" content_filter`},
		{"finish reason sensitive", ev(`{"content":"x"}`) + fin("sensitive"), `text "x" content_filter`},
		{"finish reason empty in every event", `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":""}]}` + "\n\n" + stop, `text "x" stop`},
		{"finish reason the text null", `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"null"}]}` + "\n\n" + stop, `text "x" stop`},
		{"Gemini: a malformed call", fin("MALFORMED_FUNCTION_CALL"), "error overloaded true"},
		{"finish reason error", ev(`{"content":"x"}`) + fin("error"), `text "x" error overloaded true`},

		// Errors in the stream.
		{"error object", ev(`{"content":"x"}`) + `data: {"error":{"message":"boom","type":"server_error"}}` + "\n\n", `text "x" error overloaded true`},
		{"error with choices", `data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"boom"}}` + "\n\n", "error overloaded true"},
		{"error null is none", `data: {"error":null,"choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n" + stop, `text "x" stop`},
		{"error false is none", `data: {"error":false,"choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n" + stop, `text "x" stop`},
		{"error an empty text is none", `data: {"error":"","choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n" + stop, `text "x" stop`},
		{"error as text", ev(`{"content":"x"}`) + `data: {"error":"rate limit reached"}` + "\n\n", `text "x" error rate_limited true`},
		{"error event with a text", ev(`{"content":"x"}`) + "event: error\ndata: overloaded\n\n", `text "x" error overloaded true`},
		{"HTTP 200 with an error as JSON", `{"error":{"message":"maximum context length is 8192 tokens","code":"context_length_exceeded"}}`, "error overflow false"},
		{"HTTP 200 with an error as indented JSON", "{\n  \"error\": {\n    \"message\": \"Invalid API key\",\n    \"code\": \"invalid_api_key\"\n  }\n}\n", "error auth false"},
		{"HTTP 200 with an error code as a number", `{"error":{"message":"no","code":401}}`, "error auth false"},
		{"GLM: an error code as text", `data: {"error":{"code":"1302","message":"Rate limit reached for requests"}}` + "\n\n", "error rate_limited true"},
		{"nothing", "", "error truncated true"},
		{"only comments", ": ping\n\n: ping\n\n", "error truncated true"},
		{"cut in an event", ev(`{"content":"x"}`) + `data: {"choices":[{"ind`, `text "x" error truncated true`},
		{"cut in a call", tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\""}}`), "c1 f BAD; error truncated true"},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		if seen[tt.name] {
			t.Fatalf("%s stands here twice", tt.name)
		}
		seen[tt.name] = true
		t.Run(tt.name, func(t *testing.T) {
			everySplit(t, []byte(tt.body), func(a answer) {
				if got := said(a); got != tt.want {
					t.Errorf("got  %s\nwant %s\n%s", got, tt.want, bytes.TrimSpace([]byte(tt.body)))
					if a.Error != nil {
						t.Log(a.Error.Message)
					}
				}
				if t.Failed() {
					t.FailNow()
				}
			})
		})
	}
}

// TestCompressed: an answer that a proxy compressed although nobody asked for it.
func TestCompressed(t *testing.T) {
	gzipped := func(s string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(s))
		_ = w.Close()
		return b.Bytes()
	}
	deflated := func(s string) []byte {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		_, _ = w.Write([]byte(s))
		_ = w.Close()
		return b.Bytes()
	}
	body := ev(`{"content":"x"}`) + fin("stop")
	tests := []struct {
		name, coding string
		body         []byte
		status       int
		want         string
	}{
		{"gzip", "gzip", gzipped(body), 200, `text "x" stop`},
		{"gzip in capitals", "GZIP", gzipped(body), 200, `text "x" stop`},
		{"deflate", "deflate", deflated(body), 200, `text "x" stop`},
		{"identity", "identity", []byte(body), 200, `text "x" stop`},
		{"twice", "gzip, gzip", gzipped(string(gzipped(body))), 200, `text "x" stop`},
		{"gzip, cut", "gzip", gzipped(body)[:20], 200, "error truncated true"},
		{"said to be gzip", "gzip", []byte(body), 200, "error truncated true"},
		{"unknown", "br", []byte("x"), 200, "error bad_response false"},
		{"an error", "gzip", gzipped(`{"error":{"message":"maximum context length is 8192 tokens"}}`), 400, "error overflow false"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{"Content-Type": {"text/event-stream"}, "Content-Encoding": {tt.coding}}
			c := New(Options{BaseURL: testURL, Key: "k", HTTPClient: &http.Client{Transport: bodyTransport{
				open: func() io.Reader { return bytes.NewReader(tt.body) }, status: tt.status, header: h,
			}}})
			s, err := c.Stream(t.Context(), testRequest)
			a := answer{}
			if err != nil {
				a.Error = failedOf(err)
			} else {
				a = collect(t, s)
			}
			if got := said(a); got != tt.want {
				t.Errorf("got %s, want %s (%+v)", got, tt.want, a.Error)
			}
		})
	}
}

// TestExtraGoesBack: what Gemini puts beside a call goes back with it, byte for
// byte.
func TestExtraGoesBack(t *testing.T) {
	extra := `{"google":{"thought_signature":"EjQK+/=="}}`
	for _, body := range []string{
		tc(`{"id":"c1","extra_content":`+extra+`,"function":{"name":"f","arguments":"{}"}}`) + fin("stop"),
		tc(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":1}"}}`) + tc(`{"index":0,"extra_content":`+extra+`}`) + fin("stop"),
	} {
		c := New(Options{BaseURL: testURL, Key: "k", HTTPClient: &http.Client{Transport: bodyTransport{open: func() io.Reader { return strings.NewReader(body) }}}})
		s, err := c.Stream(t.Context(), testRequest)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for {
			d, err := s.Recv()
			if err != nil {
				break
			}
			for _, call := range d.Calls {
				got += call.Extra
			}
		}
		if got != extra {
			t.Errorf("extra %s", got)
		}
		raw, err := c.encode(&agent.Request{Model: "m", Messages: []agent.Message{{Role: agent.RoleAssistant, ToolCalls: []agent.ToolCall{{ID: "c1", Name: "f", Arguments: "{}", Extra: got}}}}}, dialect{})
		if err != nil || !strings.Contains(string(raw), `"extra_content":`+extra) {
			t.Errorf("%s, %v", raw, err)
		}
	}
}

// TestOverflowWords: how servers say that a request is too long, and what sounds
// like it and is something else.
func TestOverflowWords(t *testing.T) {
	for _, said := range []string{
		"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
		"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
		"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
		"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
		"Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
		"The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
		"max_tokens must be at least 1, got -904.",
		"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
		"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
		"The input (5000 tokens) is longer than the model's context length (4096 tokens).",
		"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
		"Input is too long for requested model.",
		"Please reduce the length of the messages or completion.",
		"Range of input length should be [1, 98304]",
		"Prompt exceeds max length",
		"prompt is too long: 210000 tokens > 200000 maximum",
		"Your request exceeded model token limit: 131072",
	} {
		for _, form := range []string{`{"error":{"message":%q,"type":"invalid_request_error"}}`, `{"object":"error","message":%q,"code":400}`, `{"detail":%q}`, `{"error":%q}`} {
			i := parseFailure(fmt.Appendf(nil, form, said))
			i.status = 400
			if kind, _ := i.kind(); kind != agent.ErrOverflow {
				t.Errorf(form+" is %s", said, kind)
			}
		}
	}
	for said, status := range map[string]int{
		"Rate limit reached: too many tokens per minute":                                       429,
		"max_tokens must be at least 1, got 0":                                                 400,
		"max_tokens is too large: 100000. This model supports at most 16384 completion tokens": 400,
		"context deadline exceeded":                                                            500,
	} {
		i := parseFailure(fmt.Appendf(nil, `{"error":{"message":%q}}`, said))
		i.status = status
		if kind, _ := i.kind(); kind == agent.ErrOverflow {
			t.Errorf("%s is no overflow", said)
		}
	}
}
