package config

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Protocol says how the model gives its commands.
type Protocol string

// The protocols. ProtocolAuto lets the profile of the model decide; tags are
// the tf-* tags in the text of the answer; native are the same commands as
// native tool calls.
const (
	ProtocolAuto   Protocol = "auto"
	ProtocolTags   Protocol = "tags"
	ProtocolNative Protocol = "native"
)

// History says what stays of executed tags in the conversation.
type History string

// The histories. HistoryStrip removes executed tags, HistoryStub leaves one
// line for each, HistoryKeep leaves them as they were.
const (
	HistoryStrip History = "strip"
	HistoryStub  History = "stub"
	HistoryKeep  History = "keep"
)

// Review says when a person looks at changes.
type Review string

// The reviews. ReviewAfter applies changes at once; ReviewBefore stages them.
const (
	ReviewAfter  Review = "after"
	ReviewBefore Review = "before"
)

// Apply says how changes reach files.
type Apply string

// The ways. ApplyAuto edits open documents through the editor and writes all
// else to disk; ApplyEditor sends everything through the editor.
const (
	ApplyAuto   Apply = "auto"
	ApplyEditor Apply = "editor"
)

// Verify says how changes are checked when the model has ended.
type Verify string

// The checks.
const (
	VerifyOff         Verify = "off"
	VerifyDiagnostics Verify = "diagnostics"
	VerifyCommand     Verify = "command"
)

// LogFormat says how the log is written.
type LogFormat string

// The forms of the log. LogAuto is JSON in a file and text elsewhere.
const (
	LogAuto LogFormat = "auto"
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Mode says what a session may do.
type Mode string

// The modes. ModeAsk answers questions and changes nothing; ModePlan the same,
// and makes a plan; ModeEdit changes files, and asks before what cannot be
// taken back; ModeAuto does not ask for deleting and shell commands.
const (
	ModeAsk  Mode = "ask"
	ModePlan Mode = "plan"
	ModeEdit Mode = "edit"
	ModeAuto Mode = "auto"
)

// Modes lists the modes, the most careful first.
var Modes = []Mode{ModeAsk, ModePlan, ModeEdit, ModeAuto}

// Class is a kind of action that asks first, and that a headless run does only
// when it is named in Config.Allow; in the lists of rules also one with a
// pattern behind it ("bash go test"), as package policy reads it.
type Class string

// The classes.
const (
	AllowBash      Class = "bash"
	AllowDelete    Class = "delete"
	AllowSecrets   Class = "secrets"
	AllowProtected Class = "protected"
	AllowNet       Class = "net" // commands may use the network
	AllowGit       Class = "git" // commands may change version control metadata
)

// Sandbox says whether shell commands are held.
type Sandbox string

// The settings. SandboxAuto takes the strongest that works, and asks for every
// command where none does; SandboxNone runs commands as they are.
const (
	SandboxAuto Sandbox = "auto"
	SandboxNone Sandbox = "none"
)

// Config holds every setting. Its zero value is not useful: see Defaults and
// Load. Tags: key (in the file and in editor settings), env (variables, the
// first that is set counts), default, enum, rules, unit, min, scope and doc.
//
// Scope "machine" marks the keys that an editor must not take from settings
// stored in a workspace.
type Config struct {
	Model    string   `group:"Model and endpoint" key:"model" env:"THINKFLOW_MODEL" doc:"Name of the model, as the endpoint spells it. There is no default: names age faster than programs."`
	BaseURL  string   `key:"base_url" env:"THINKFLOW_BASE_URL,OPENAI_BASE_URL" default:"https://api.openai.com/v1" scope:"machine" doc:"Base URL of an OpenAI-compatible API, up to and including the version (…/v1)."`
	KeyEnv   string   `key:"key_env" env:"THINKFLOW_KEY_ENV" default:"OPENAI_API_KEY" scope:"machine" doc:"Name of the environment variable that holds the API key."`
	KeyFile  string   `key:"key_file" env:"THINKFLOW_KEY_FILE" scope:"machine" doc:"File that holds the API key, used when the variable is empty. Only its owner may be able to read it (mode 0600). A path that starts with ~/ is taken from the home folder."`
	Protocol Protocol `key:"protocol" env:"THINKFLOW_PROTOCOL" default:"auto" enum:"auto,tags,native" doc:"How the model gives its commands: as tf-* tags in its answer, or as native tool calls. auto takes what the profile of the model says (tags unless it knows better), and changes to native calls when a model broke the form of tags twice in a run."`

	MaxOutputTokens int               `key:"max_output_tokens" env:"THINKFLOW_MAX_OUTPUT_TOKENS" default:"0" min:"0" unit:"tokens" doc:"Bound on one answer; 0 leaves it to the server."`
	ContextTokens   int               `key:"context_tokens" env:"THINKFLOW_CONTEXT_TOKENS" default:"0" min:"0" unit:"tokens" doc:"Size of the model's context; 0 means unknown."`
	Temperature     *float32          `key:"temperature" env:"THINKFLOW_TEMPERATURE" min:"0" max:"2" doc:"Sampling temperature; not sent unless set."`
	ReasoningEffort string            `key:"reasoning_effort" env:"THINKFLOW_REASONING_EFFORT" doc:"Reasoning effort, in the words of the provider (low, medium, high …); not sent unless set."`
	SendReasoning   bool              `key:"send_reasoning" env:"THINKFLOW_SEND_REASONING" default:"false" doc:"Send the model's reasoning back with the history, for providers that ask for it."`
	ExtraBody       map[string]any    `key:"extra_body" env:"THINKFLOW_EXTRA_BODY" scope:"machine" doc:"Further fields for the request body. In the environment: a JSON object."`
	Headers         map[string]string `key:"headers" env:"THINKFLOW_HEADERS" scope:"machine" doc:"Further request headers. ${NAME} in a value is replaced by that environment variable, so that no secret stands in the file. In the environment: a JSON object."`

	Profiles map[string]any `key:"profiles" env:"THINKFLOW_PROFILES" scope:"machine" doc:"What is known of models, by name of the profile: match (patterns for the model's name), protocol, no_tools, teach, start_in_think, context, max_output, send_reasoning, extra_body, price_input, price_output, price_cached. A name of the built-in table changes that row; any other adds one. In the environment: a JSON object."`

	StartInThink bool `key:"start_in_think" env:"THINKFLOW_START_IN_THINK" default:"false" doc:"The answer begins inside a think block: for servers that swallow its opening tag."`

	Mode     Mode     `group:"Commands and changes" key:"mode" env:"THINKFLOW_MODE" default:"edit" enum:"ask,plan,edit,auto" scope:"machine" doc:"What a session may do: ask only answers, plan only makes a plan, edit changes files and asks before deleting and shell commands, auto does not ask for those. It can be switched while a session goes on."`
	ToolsOff []string `key:"tools_off" env:"THINKFLOW_TOOLS_OFF" doc:"Native tools that are not offered, by name."`

	Verify        Verify `key:"verify" env:"THINKFLOW_VERIFY" default:"diagnostics" enum:"off,diagnostics,command" scope:"machine" doc:"How changes are checked when the model has ended: diagnostics tells it, once, the errors that the editor shows in changed files and did not show before; command runs verify_command and tells it when that fails."`
	VerifyCommand string `key:"verify_command" env:"THINKFLOW_VERIFY_COMMAND" scope:"machine" doc:"Shell command that checks changes (a test, a build). When empty, the content of .thinkflow/verify in the workspace, once you have trusted it."`

	ReasoningCommands bool    `key:"reasoning_commands" env:"THINKFLOW_REASONING_COMMANDS" default:"true" doc:"Run predictable commands (all but read, bash and delete) that the model gives while it reasons."`
	StrictTags        bool    `key:"strict_tags" env:"THINKFLOW_STRICT_TAGS" default:"false" doc:"Every tag must carry the key of the session, so that text which the model only quotes can never run."`
	LegacyTags        bool    `key:"legacy_tags" env:"THINKFLOW_LEGACY_TAGS" default:"false" doc:"Also accept tags without the tf- prefix."`
	History           History `key:"history" env:"THINKFLOW_HISTORY" default:"strip" enum:"strip,stub,keep" doc:"What stays of executed tags in the conversation."`
	Review            Review  `key:"review" env:"THINKFLOW_REVIEW" default:"after" enum:"after,before" doc:"after applies changes at once and lets you undo them; before stages them until you accept."`
	Apply             Apply   `key:"apply" env:"THINKFLOW_APPLY" default:"auto" enum:"auto,editor" doc:"auto edits open documents through the editor and writes everything else to disk; editor sends everything through the editor."`
	Allow             []Class `key:"allow" env:"THINKFLOW_ALLOW" enum:"bash,delete,secrets,protected,net,git,read,write,tool:NAME" rules:"true" scope:"machine" doc:"What is done without a question: an action (bash, delete, secrets, protected, net, git, write, read, tool:NAME), or an action and a pattern, like \"bash go test\" or \"delete build/\". A line of the shell passes when each of its commands begins with the words of an entry. net and git open the sandbox for commands: the network, and version control metadata."`
	Ask               []Class `key:"ask" env:"THINKFLOW_ASK" enum:"bash,delete,secrets,protected,net,git,read,write,tool:NAME" rules:"true" scope:"machine" doc:"What asks although it would be allowed, in the same form: \"write *.sql\", \"bash git push\". It wins over allow."`
	Deny              []Class `key:"deny" env:"THINKFLOW_DENY" enum:"bash,delete,secrets,protected,net,git,read,write,tool:NAME" rules:"true" scope:"machine" doc:"What is never done, in the same form: \"read secrets/\", \"bash git push\". It wins over ask and allow, and nobody is asked. What may not be read may not be changed, listed or searched either."`
	Sandbox           Sandbox `key:"sandbox" env:"THINKFLOW_SANDBOX" default:"auto" enum:"auto,none" scope:"machine" doc:"auto holds shell commands with the strongest means that works on this machine (thinkflow doctor names it), and asks for every command where none does; none lets them run as they are."`

	MaxTurns  int           `group:"Bounds of a run" key:"max_turns" env:"THINKFLOW_MAX_TURNS" default:"50" min:"1" unit:"turns" doc:"API calls of one run."`
	MaxTokens int           `key:"max_tokens" env:"THINKFLOW_MAX_TOKENS" default:"0" min:"0" unit:"tokens" doc:"Input and output of one run together; 0 means no bound."`
	MaxCost   float64       `key:"max_cost" env:"THINKFLOW_MAX_COST" default:"0" min:"0" doc:"Cost of one run, in the currency of the prices below; 0 means no bound."`
	MaxWall   time.Duration `key:"max_wall" env:"THINKFLOW_MAX_WALL" default:"0s" min:"0" doc:"Wall time of one run, without the time it waits for a person; 0 means no bound."`

	ApprovalWait time.Duration `key:"approval_wait" env:"THINKFLOW_APPROVAL_WAIT" default:"10m" min:"1ms" doc:"Time that a question to a person may stay unanswered. Then the run is suspended, and goes on when the answer comes (thinkflow approve)."`

	TaskTurns   int           `key:"task_turns" env:"THINKFLOW_TASK_TURNS" default:"20" min:"1" unit:"turns" doc:"API calls of one sub-agent."`
	TaskTimeout time.Duration `key:"task_timeout" env:"THINKFLOW_TASK_TIMEOUT" default:"30m" min:"1ms" doc:"Time for one sub-agent, without waiting for a person."`
	TaskTokens  int           `key:"task_tokens" env:"THINKFLOW_TASK_TOKENS" default:"0" min:"0" unit:"tokens" doc:"Input and output of one sub-agent together; 0 means as much as its run may still have."`

	PriceInput  float64 `key:"price_input" env:"THINKFLOW_PRICE_INPUT" default:"0" min:"0" doc:"Price of a million input tokens."`
	PriceOutput float64 `key:"price_output" env:"THINKFLOW_PRICE_OUTPUT" default:"0" min:"0" doc:"Price of a million output tokens."`
	PriceCached float64 `key:"price_cached" env:"THINKFLOW_PRICE_CACHED" default:"0" min:"0" doc:"Price of a million input tokens that came from the provider's cache."`

	ConnectTimeout    time.Duration `group:"Time-outs and retries" key:"connect_timeout" env:"THINKFLOW_CONNECT_TIMEOUT" default:"10s" min:"1ms" doc:"Time to reach the endpoint."`
	FirstTokenTimeout time.Duration `key:"first_token_timeout" env:"THINKFLOW_FIRST_TOKEN_TIMEOUT" default:"2m" min:"1ms" doc:"Time from the request to the first piece of the answer."`
	IdleTimeout       time.Duration `key:"idle_timeout" env:"THINKFLOW_IDLE_TIMEOUT" default:"1m" min:"1ms" doc:"Longest silence inside an answer."`
	Retries           int           `key:"retries" env:"THINKFLOW_RETRIES" default:"4" min:"0" doc:"Further attempts after an overload, a rate limit or a lost connection."`
	RetryCap          time.Duration `key:"retry_cap" env:"THINKFLOW_RETRY_CAP" default:"2m" min:"1ms" doc:"Longest wait before one attempt; a server that asks for more ends the run."`
	BashTimeout       time.Duration `key:"bash_timeout" env:"THINKFLOW_BASH_TIMEOUT" default:"2m" min:"1ms" doc:"Time for one shell command."`

	AttachBudget int `group:"Sizes" key:"attach_budget" env:"THINKFLOW_ATTACH_BUDGET" default:"24KiB" min:"0" unit:"bytes" doc:"Files named in the task that are sent along with it, together."`
	ResultBudget int `key:"result_budget" env:"THINKFLOW_RESULT_BUDGET" default:"64KiB" min:"1024" unit:"bytes" doc:"Results of the reads and tools of one turn, together."`
	BashOutput   int `key:"bash_output" env:"THINKFLOW_BASH_OUTPUT" default:"32KiB" min:"1024" unit:"bytes" doc:"Output of one shell command that is kept: its beginning and its end."`

	Notify      string        `group:"Notifications" key:"notify" env:"THINKFLOW_NOTIFY" default:"off" enum:"off,bell,osc9,osc777" doc:"How a terminal is told that a long run ended or that one asks: a bell, or a desktop notification by OSC 9 or OSC 777."`
	NotifyAfter time.Duration `key:"notify_after" env:"THINKFLOW_NOTIFY_AFTER" default:"10s" min:"0" doc:"A run that took less is not told of when it ends: somebody is looking."`
	NotifyHook  string        `key:"notify_hook" env:"THINKFLOW_NOTIFY_HOOK" scope:"machine" doc:"Command line that is run when a run ends (after notify_after), is suspended or asks: of a terminal, of thinkflow serve, and of an editor, whatever the editor itself shows. It gets THINKFLOW_EVENT (done, failed, asks …), THINKFLOW_RUN, THINKFLOW_TASK and THINKFLOW_TEXT."`

	LogLevel  string    `group:"Logs and state" key:"log_level" env:"THINKFLOW_LOG_LEVEL" default:"warn" enum:"debug,info,warn,error" doc:"Least severity that is logged."`
	LogFormat LogFormat `key:"log_format" env:"THINKFLOW_LOG_FORMAT" default:"auto" enum:"auto,text,json" doc:"Form of the log: auto is one JSON object a line in a log_file and text on standard error."`
	LogFile   string    `key:"log_file" env:"THINKFLOW_LOG_FILE" scope:"machine" doc:"File for the log; standard error when empty."`
	StateDir  string    `key:"state_dir" env:"THINKFLOW_STATE_DIR" scope:"machine" doc:"Folder for ledgers. Default: $XDG_STATE_HOME/thinkflow, ~/.local/state/thinkflow, or what the operating system has in its place."`
	// LedgerAge and LedgerSize are ledger.Options.KeepFor and KeepBytes.
	LedgerAge  time.Duration `key:"ledger_age" env:"THINKFLOW_LEDGER_AGE" default:"4320h" min:"0" scope:"machine" doc:"How long the ledger keeps a run after its last word. Older ones are removed by themselves, in the background, once a day; the hash chain stays whole. Runs that wait for an answer or a review are kept. 0 keeps all. thinkflow ledger prune removes at once."`
	LedgerSize int           `key:"ledger_size" env:"THINKFLOW_LEDGER_SIZE" default:"1GiB" min:"0" unit:"bytes" scope:"machine" doc:"Size of the ledger of one workspace from which the oldest runs are removed in the same way; 0 sets no bound."`

	// APIKey is resolved by Load from KeyEnv, KeyFile and the key ring; it is not
	// a setting.
	APIKey Secret `key:"-"`

	keyPath string
	secrets []string // of the environment, in headers
}

// Secrets are the values that must be shown and written down nowhere: the key, and
// what headers take from the environment.
func (c *Config) Secrets() []string {
	out := []string{c.APIKey.value}
	for name, v := range c.Headers {
		if secretHeader(name) {
			out = append(out, v)
			if _, token, ok := strings.Cut(v, " "); ok { // Bearer …
				out = append(out, token)
			}
		}
	}
	return append(out, c.secrets...)
}

// KeyPath is KeyFile with the home folder in it; "" when it was not looked at.
func (c *Config) KeyPath() string {
	if c.keyPath == "" && !strings.HasPrefix(c.KeyFile, "~/") {
		return c.KeyFile
	}
	return c.keyPath
}

// Rules are the lines of allow, ask and deny, in this order.
func (c *Config) Rules() [][]string {
	var out [][]string
	for _, list := range [][]Class{c.Allow, c.Ask, c.Deny} {
		var lines []string
		for _, l := range list {
			lines = append(lines, string(l))
		}
		out = append(out, lines)
	}
	return out
}

// Level is LogLevel as slog has it.
func (c *Config) Level() slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return slog.LevelWarn
	}
	return l
}

// Secret is a value that nothing prints. Reveal gives it to the one place that
// sends it.
type Secret struct{ value string }

// NewSecret wraps a value.
func NewSecret(v string) Secret { return Secret{v} }

// Reveal is the value itself. It belongs in a request header and nowhere else.
func (s Secret) Reveal() string { return s.value }

// Set reports whether there is a value.
func (s Secret) Set() bool { return s.value != "" }

// String says only whether there is a value.
func (s Secret) String() string {
	if s.value == "" {
		return "(not set)"
	}
	return "(set)"
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return s.String() }

// Format hides the value from every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText hides the value from JSON and TOML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
