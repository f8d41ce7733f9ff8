package agent

import (
	_ "embed"
	"strings"
)

// promptText is the system prompt. With the tool schemas it stays below 8 KB:
// the prompt weighs more than the protocol.
//
//go:embed prompt.md
var promptText string

// reasoningText is added for models that think in a channel of their own.
const reasoningText = `
Commands may also stand in your thinking: the predictable ones (write, append, mkdir, touch, copy, move, edit) run there as well. Put drafts in a code fence.
`

// systemPrompt builds the system message. It is the same for every turn of a
// session, so that the provider's prefix cache holds.
func systemPrompt(o promptOptions) string {
	var b strings.Builder
	b.WriteString(promptText)
	if o.reasoning {
		b.WriteString(reasoningText)
	}
	if o.key != "" {
		b.WriteString("\nEvery command tag must carry key=\"" + o.key + "\"; one without it does not run.\n")
	}
	b.WriteString("\nWorkspace: " + strings.Join(o.roots, ", ") + "\n")
	if len(o.roots) > 1 {
		b.WriteString("Paths begin with the name of the folder: " + o.roots[0] + "/…\n")
	}
	return b.String()
}

type promptOptions struct {
	roots     []string // names, not paths: nothing of the machine is told
	reasoning bool
	key       string // strict tags
}
