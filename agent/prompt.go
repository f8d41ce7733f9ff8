package agent

import (
	_ "embed"
	"strings"
	"text/template"

	"thinkflow/internal/config"
)

// promptText is the system prompt, a template over promptOptions. With the tool
// schemas it stays below 8 KB in every mode: the prompt weighs more than the
// protocol.
//
//go:embed prompt.md
var promptText string

// reasoningText is added for models whose profile says that they think in a
// channel of their own and may write commands there.
const reasoningText = `
Commands may also stand in your thinking: the predictable ones (write, append, mkdir, touch, copy, move, edit) run there as well. Put drafts in a code fence.
`

// systemPrompt builds the system message. It is the same for every turn of a
// session until the mode, the protocol or the model changes, so that the
// provider's prefix cache holds.
func systemPrompt(o promptOptions) string {
	var b strings.Builder
	// Parsed each time: it is small, and the package keeps no state.
	if err := template.Must(template.New("prompt").Parse(promptText)).Execute(&b, o); err != nil {
		panic("system prompt: " + err.Error()) // a fault of prompt.md
	}
	if o.reasoning {
		b.WriteString(reasoningText)
	}
	if o.key != "" && !o.Native {
		b.WriteString("\nEvery command tag must carry key=\"" + o.key + "\"; one without it does not run.\n")
	}
	b.WriteString("\nWorkspace: " + strings.Join(o.roots, ", ") + "\n")
	if len(o.roots) > 1 {
		b.WriteString("Paths begin with the name of the folder: " + o.roots[0] + "/…\n")
	}
	return b.String()
}

type promptOptions struct {
	Mode     config.Mode
	Native   bool // commands are native calls
	TagReads bool // the model has no tools: it reads with a tag

	roots     []string // names, not paths: nothing of the machine is told
	reasoning bool
	key       string // strict tags
}

// Edits tells whether files may be changed.
func (o promptOptions) Edits() bool { return inMode(config.ModeEdit, o.Mode) }

// Plan tells whether a plan is all that is wanted.
func (o promptOptions) Plan() bool { return o.Mode == config.ModePlan }

// systemPrompt is the system message of the next request.
func (r *run) systemPrompt(set *setup) string {
	var names []string
	if r.e.ws != nil {
		for _, root := range r.e.ws.Roots() {
			names = append(names, root.Name)
		}
	}
	return systemPrompt(promptOptions{
		Mode: set.Mode, Native: set.native, TagReads: set.profile.NoTools,
		roots: names, reasoning: set.teach, key: r.s.key,
	})
}

// FirstRequestBytes is the size of the system prompt and the tool schemas: what
// every request pays.
func (e *Engine) FirstRequestBytes() int {
	cfg := e.cfg
	r := &run{e: e, cfg: cfg, rules: e.rules, s: newSession("", &cfg)}
	set := r.setup()
	n := len(r.systemPrompt(set))
	for _, t := range set.tools.offer(r, set) {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return n
}
