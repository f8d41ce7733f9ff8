package agent

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/internal/config"
)

// maxFirstRequest bounds the system prompt and the tool schemas together, in
// bytes of the request.
const maxFirstRequest = 8 << 10

// TestPromptGolden shows, in one file for each mode and protocol, all that the
// first request holds besides the task: a change of the prompt or of a schema is
// a change that is seen. No mode may weigh more than 8 KB.
func TestPromptGolden(t *testing.T) {
	for _, mode := range config.Modes {
		for _, protocol := range []config.Protocol{config.ProtocolTags, config.ProtocolNative} {
			name := fmt.Sprintf("%s-%s", mode, protocol)
			t.Run(name, func(t *testing.T) {
				system, tools := firstRequest(t, mode, protocol)
				var b bytes.Buffer
				b.WriteString(system)
				for _, tool := range tools {
					var schema bytes.Buffer
					require.NoError(t, json.Indent(&schema, tool.Parameters, "", "  "))
					b.WriteString("\n## " + tool.Name + "\n" + tool.Description + "\n" + schema.String() + "\n")
				}
				var raw bytes.Buffer
				enc := json.NewEncoder(&raw)
				enc.SetEscapeHTML(false)
				require.NoError(t, enc.Encode(map[string]any{"messages": []Message{{Role: RoleSystem, Content: system}}, "tools": tools}))
				require.LessOrEqual(t, raw.Len(), maxFirstRequest)
				fmt.Fprintf(&b, "\n%d bytes\n", raw.Len())

				golden := filepath.Join("..", "testdata", "agent", "prompt", name+".golden")
				if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
					require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
					require.NoError(t, os.WriteFile(golden, b.Bytes(), 0o644))
					return
				}
				want, err := os.ReadFile(golden)
				require.NoError(t, err)
				require.Equal(t, string(want), b.String())
			})
		}
	}
}

// firstRequest is what a session with everything switched on begins with.
func firstRequest(t *testing.T, mode config.Mode, protocol config.Protocol) (string, []Tool) {
	t.Helper()
	cfg := config.Config{Mode: mode, Protocol: protocol, Allow: []config.Class{config.AllowBash}, ReasoningCommands: true}
	e := New(Options{Config: cfg})
	r := &run{e: e, cfg: cfg, s: newSession("s", &cfg)}
	set := r.setup()
	return systemPrompt(promptOptions{Mode: set.Mode, Native: set.native, reasoning: !set.native && set.Mode != config.ModeAsk && set.Mode != config.ModePlan, roots: []string{"demo"}}), e.tools.offer(r, set)
}
