package lsp

import (
	"encoding/json"
	"slices"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// codec encodes payloads with the LSP types' own encoders; raw JSON passes
// through as it is. (protocol has the same one, unexported.)
type codec struct{}

var _ jsonrpc2.Codec = codec{}

func (codec) Marshal(v any) ([]byte, error) {
	switch raw := v.(type) {
	case jsonrpc2.RawMessage:
		if raw == nil {
			return []byte("null"), nil
		}
		return raw, nil
	case json.RawMessage:
		if raw == nil {
			return []byte("null"), nil
		}
		return raw, nil
	}
	return protocol.Marshal(v)
}

func (codec) Unmarshal(data []byte, v any) error {
	if raw, ok := v.(*jsonrpc2.RawMessage); ok {
		*raw = slices.Clone(data)
		return nil
	}
	return protocol.Unmarshal(data, v)
}

// ourJSON encodes our own types. encoding/json, not the LSP encoder: events
// read the same here, in `thinkflow run --json` and in the documentation.
func ourJSON(v any) (jsonrpc2.RawMessage, error) {
	return json.Marshal(v)
}
