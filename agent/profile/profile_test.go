package profile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/agent/profile"
)

func TestLookup(t *testing.T) {
	tests := []struct{ model, want string }{
		{"gpt-5", "gpt-5"},
		{"gpt-5-mini-2025-08-07", "gpt-5-mini"},
		{"openai/gpt-4o-mini", "gpt-4o-mini"},
		{"DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1"},
		{"deepseek/deepseek-chat", "deepseek-chat"},
		{"qwen2.5-coder:7b", "qwen2.5-coder"},
		{"Qwen/Qwen3-235B-A22B-Thinking-2507", "qwen-thinking"},
		{"qwen3:8b", "qwen"},
		{"gpt-5.1", "gpt-5.x"},
		{"gpt-5.4-mini", "gpt-5.4-mini"},
		{"gpt-5.3-codex", "gpt-5.2"},
		{"glm-5.3", "glm-5"},
		{"glm-5.1", "glm-5.0"},
		{"grok-4.5", "grok-4.x"},
		{"grok-4", "grok"},
		{"moonshot-v1-8k", "default"},
		{"gpt-oss:20b", "gpt-oss"},
		{"z-ai/glm-4.6", "glm"},
		{"something-new", "default"},
		{"", "default"},
	}
	for _, tt := range tests {
		p, err := profile.Lookup(tt.model, nil)
		require.NoError(t, err)
		require.Equal(t, tt.want, p.Name, tt.model)
	}
}

func TestUsersRows(t *testing.T) {
	user := profile.Overrides{
		"qwen":     map[string]any{"context": int64(32768), "extra_body": map[string]any{"enable_thinking": false}},
		"my-model": map[string]any{"protocol": "native", "price_input": 0.5},
		"house":    map[string]any{"match": []any{"gpt-5*"}, "start_in_think": true},
	}
	p, err := profile.Lookup("qwen3:8b", user)
	require.NoError(t, err)
	require.Equal(t, 32768, p.Context)
	require.Equal(t, "reasoning", p.Teach, "what the row does not say stays")
	require.Equal(t, map[string]any{"enable_thinking": false}, p.Extra)

	p, _ = profile.Lookup("my-model", user)
	require.Equal(t, "native", p.Protocol)
	p, _ = profile.Lookup("gpt-5", user)
	require.Equal(t, "house", p.Name, "the user's rows go first")
	p, _ = profile.Lookup("qwen3:8b", nil)
	require.Equal(t, 131_072, p.Context, "the table itself has not changed")

	for name, bad := range map[string]any{
		"unknown field":  map[string]any{"contxt": 1},
		"wrong protocol": map[string]any{"protocol": "xml"},
		"wrong teach":    map[string]any{"teach": "both"},
		"bad pattern":    map[string]any{"match": []any{"[a"}},
		"no table":       7,
	} {
		_, err := profile.Lookup("gpt-5", profile.Overrides{"x": bad})
		require.Error(t, err, name)
	}
}

// TestTableIsSound: names are unique and each row can be reached.
func TestTableIsSound(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range profile.Names() {
		require.False(t, seen[name], name)
		seen[name] = true
		p, err := profile.Lookup("nothing like it", profile.Overrides{name: map[string]any{"match": []any{"nothing like it"}}})
		require.NoError(t, err)
		require.Equal(t, name, p.Name)
		require.NotEmpty(t, p.Source, "%s: where do its numbers stand?", name)
		if p.PriceInput != 0 || p.PriceOutput != 0 || p.PriceCached != 0 {
			require.Regexp(t, `20\d\d`, p.Source, "%s: a price has a date", name)
			require.Positive(t, p.PriceInput, name)
			require.Positive(t, p.PriceOutput, name)
			require.Positive(t, p.PriceCached, "%s: unknown is not 0", name)
		}
	}
}
