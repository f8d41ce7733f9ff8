package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/internal/redact"
	"thinkflow/workspace"
)

// auditor is an engine on the ledger that the program's commands read.
type auditor struct {
	t       *testing.T
	environ []string
	dir     string
	engine  *agent.Engine
	run     string
	answer  agent.Decision // of the person who is there
	asked   func()
}

func newAuditor(t *testing.T, script, set string, answer agent.Decision) *auditor {
	_, url := model(t, script)
	a := &auditor{t: t, dir: t.TempDir(), answer: answer}
	a.environ = home(t, "OPENAI_API_KEY=sk-of-this-process-0123456789", "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=scripted")
	for name, text := range map[string]string{
		"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n", ".env": "COLOUR=blue\n", "sub/c.txt": "needle\n",
	} {
		path := filepath.Join(a.dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	prog := &app{ctx: t.Context(), stdout: os.Stderr, stderr: os.Stderr, environ: a.environ}
	prog.redact = &redact.Redactor{}
	flags := settings{Set: map[string]string{"sandbox": "none"}}
	for _, kv := range strings.Fields(set) {
		k, v, _ := strings.Cut(kv, "=")
		flags.Set[k] = v
	}
	loaded, err := prog.load(&flags, nil, nil)
	require.NoError(t, err)
	p := parts{cfg: loaded.Config, roots: []workspace.Root{{Dir: a.dir}}, redact: prog.redact, asks: "test"}
	if answer != "" {
		p.approver = a
	}
	a.engine, _, err = assemble(p)
	require.NoError(t, err)
	return a
}

// Ask is the person's answer. "leave" is nobody's.
func (a *auditor) Ask(ctx context.Context, _ agent.ApprovalEvent) (agent.Decision, error) {
	if a.asked != nil {
		a.asked()
	}
	if a.answer == "leave" {
		<-ctx.Done()
		return agent.Deny, ctx.Err()
	}
	return a.answer, nil
}

// show is what `thinkflow ledger show --json` says of a command of the run.
func (a *auditor) show(ref string) map[string]any {
	a.t.Helper()
	r := call(a.t.Context(), a.environ, "", "ledger", "show", "--json", "--dir", a.dir, a.run+"/"+ref)
	require.Equal(a.t, exitOK, r.code, r.stderr)
	assert.Empty(a.t, r.stderr, "nothing was left to be settled")
	var v map[string]any
	require.NoError(a.t, json.Unmarshal([]byte(r.stdout), &v))
	return v
}

// rows are the rows of the chain about a command, without "ledger.".
func rows(v map[string]any) string {
	var out []string
	for _, e := range v["events"].([]any) {
		out = append(out, strings.TrimPrefix(e.(map[string]any)["type"].(string), "ledger."))
	}
	return strings.Join(out, " ")
}

// body is what the last row of a type says.
func body(v map[string]any, typ string) map[string]any {
	var out map[string]any
	for _, e := range v["events"].([]any) {
		if m := e.(map[string]any); m["type"] == "ledger."+typ {
			out, _ = m["body"].(map[string]any)
		}
	}
	return out
}

// auditCase is one kind of command: how it came about, and what the ledger gives
// back of it. want has the members that must be there; "*" stands for any value
// but none. rows are those of the chain about it.
type auditCase struct {
	name   string
	set    string
	answer agent.Decision // "" = nobody is there, "leave" = nobody answers
	script string         // of the first turn; an answer without commands ends the run
	after  func(a *auditor, res agent.RunResult)
	ref    string // of the run
	want   string
	rows   string
}

// Members that every command has, and those of one that a person must be told of.
const (
	always   = `"tool":"*","flow":"*","status":"*","content_hash":"*","intent_at":"*","outcome_at":"*","risk":"*",`
	injected = `"injected":"*",`
)

var auditCases = []auditCase{
	{
		name:   "write",
		script: "text <<END\n<tf-write id=\"1\" path=\"new/n.txt\">\nhello\n</tf-write>\nEND\n", ref: "1/text/1",
		want: always + `"tool":"tf-write","path":"new/n.txt","abs":"*","via":"disk","flow":"streamed","risk":"low","content":{"body":"hello\n"},
			"summary":"6 bytes","after_hash":"*","status":"applied","bytes":6,"added":1`,
		rows: "intent outcome",
	},
	{
		name:   "write that needs a result",
		script: "text <<END\n<tf-write id=\"1\" path=\"a.txt\" need_result=\"true\">\nhello\n</tf-write>\nEND\n", ref: "1/text/1",
		want: always + injected + `"need_result":true,"risk":"medium","before_hash":"*","after_hash":"*","undo_blob":"*","added":1,"removed":3`,
		rows: "intent outcome injected",
	},
	{
		name:   "edit",
		script: "text <<END\n<tf-edit id=\"1\" path=\"a.txt\"><old>two</old><new>2</new></tf-edit>\nEND\n", ref: "1/text/1",
		want: always + `"content":{"pairs":[{"old":"two","new":"2"}]},"summary":"1 pairs, 4 bytes","rung":"exact","bytes":12,"added":1,"removed":1`,
		rows: "intent outcome",
	},
	{
		name:   "edit that fails",
		script: "text <<END\n<tf-edit id=\"1\" path=\"a.txt\"><old>nine</old><new>9</new></tf-edit>\n<tf-touch id=\"2\" path=\"t\"/>\nEND\n", ref: "1/text/1",
		want: always + injected + `"content":{"pairs":[{"old":"nine","new":"9"}]},"abs":"*","status":"failed","code":"no_match","error":"*","risk":"none"`,
		rows: "record injected",
	},
	{
		name:   "skipped behind a failure",
		script: "text <<END\n<tf-edit id=\"1\" path=\"a.txt\"><old>nine</old><new>9</new></tf-edit>\n<tf-touch id=\"2\" path=\"t\"/>\nEND\n", ref: "1/text/2",
		want: always + injected + `"tool":"tf-touch","path":"t","status":"skipped","code":"skipped","error":"command 1 failed before it"`,
		rows: "record injected",
	},
	{
		name:   "tag that is none",
		script: "text <<END\n<tf-write id=\"1\">\nhello\n</tf-write>\nEND\n", ref: "1/text/1",
		want: always + injected + `"tool":"tf-write","status":"failed","code":"missing_attribute","error":"*"`,
		rows: "record injected",
	},
	{
		name:   "append, mkdir, touch",
		script: "text <<END\n<tf-append id=\"1\" path=\"b.txt\">\nmore\n</tf-append>\n<tf-mkdir id=\"2\" path=\"d\"/>\n<tf-touch id=\"3\" path=\"t\"/>\nEND\n", ref: "1/text/2",
		want: always + `"tool":"tf-mkdir","path":"d","after_hash":"dir","status":"applied"`,
		rows: "intent outcome",
	},
	{
		name:   "copy",
		script: "text <<END\n<tf-copy id=\"1\" path=\"b.txt\" dest=\"c.txt\"/>\nEND\n", ref: "1/text/1",
		want: always + `"path":"b.txt","dest":"c.txt","abs":"*","abs_dest":"*","before_hash":"*","after_hash":"*","status":"applied"`,
		rows: "intent outcome",
	},
	{
		name:   "move",
		script: "text <<END\n<tf-move id=\"1\" path=\"b.txt\" dest=\"d/b.txt\"/>\nEND\n", ref: "1/text/1",
		want: always + `"path":"b.txt","dest":"d/b.txt","risk":"high","undo_blob":"*","status":"applied"`,
		rows: "intent outcome",
	},
	{
		name: "delete that was allowed", answer: agent.AllowOnce,
		script: "text <<END\n<tf-delete id=\"1\" path=\"b.txt\"/>\nEND\n", ref: "1/text/1",
		want: always + `"tool":"tf-delete","flow":"blocking","risk":"high","before_hash":"*","undo_blob":"*","status":"applied",
			"approval":{"action":"delete","decision":"once","by":"test","approval":"*","subject":"tf-delete b.txt","target":"*","hash":"*"}`,
		rows: "approval intent outcome",
	},
	{
		name: "delete that was refused", answer: agent.Deny,
		script: "text <<END\n<tf-delete id=\"1\" path=\"b.txt\"/>\nEND\n", ref: "1/text/1",
		want: always + injected + `"status":"rejected","code":"rejected","error":"*","approval":{"decision":"no","by":"test"}`,
		rows: "approval record injected",
	},
	{
		name:   "delete that nobody could allow",
		script: "text <<END\n<tf-delete id=\"1\" path=\"b.txt\"/>\nEND\n", ref: "1/text/1",
		want: always + injected + `"status":"rejected","code":"permission_denied","error":"*","approval":{"decision":"no","by":"nobody"}`,
		rows: "approval record injected",
	},
	{
		name:   "read",
		script: "text <<END\n<tf-read id=\"1\" path=\"a.txt\"/>\nEND\n", ref: "1/text/1",
		want: always + injected + `"tool":"tf-read","path":"a.txt","abs":"*","need_result":true,"flow":"blocking","risk":"low","bytes":14,"output":"a.txt: lines 1-3 of 3","status":"applied"`,
		rows: "record injected",
	},
	{
		name:   "read of what is not there",
		script: "text <<END\n<tf-read id=\"1\" path=\"x.txt\"/>\nEND\n", ref: "1/text/1",
		want: always + injected + `"status":"failed","code":"not_found","error":"*"`,
		rows: "record injected",
	},
	{
		name: "read of a secret that was allowed", answer: agent.AllowOnce,
		script: "text <<END\n<tf-read id=\"1\" path=\".env\"/>\nEND\n", ref: "1/text/1",
		want: always + injected + `"secret":true,"risk":"secret","status":"applied","approval":{"action":"secrets","by":"test"}`,
		rows: "approval record injected",
	},
	{
		name: "bash", set: "allow=bash",
		script: "text <<END\n<tf-bash id=\"1\">echo out; echo err >&2; exit 3</tf-bash>\nEND\n", ref: "1/text/1",
		want: always + injected + `"tool":"tf-bash","cmd":"echo out; echo err >&2; exit 3","need_result":true,"flow":"blocking","risk":"high",
			"status":"applied","stdout":"out\nerr\n","output":"2 lines, 8 bytes","bytes":8,"exit_code":3`,
		rows: "intent outcome injected",
	},
	{
		name: "bash in the background", set: "allow=bash",
		script: "text <<END\n<tf-bash id=\"1\" cmd=\"echo begun; sleep 600\" background=\"true\"/>\nEND\n", ref: "1/text/1",
		want: always + injected + `"summary":"in the background","status":"applied","stdout":"begun\n","exit_code":-1,"notes":"*"`,
		rows: "intent outcome injected outcome",
	},
	{
		name: "dropped behind a bash", set: "allow=bash",
		script: "text <<END\n<tf-bash id=\"1\">true</tf-bash>\n<tf-touch id=\"2\" path=\"t\"/>\nEND\n", ref: "1/text/2",
		want: always + injected + `"status":"skipped","code":"skipped","error":"*"`,
		rows: "record injected",
	},
	{
		name:   "command in the reasoning",
		script: "reasoning <<END\n<tf-touch id=\"1\" path=\"t\"/>\nEND\ntext \"ok\"\n", ref: "1/reasoning/1",
		want: always + `"channel":"reasoning","status":"applied"`,
		rows: "intent outcome",
	},
	{
		name:   "native read",
		script: `call read_file {"path":"a.txt","line":2}` + "\n", ref: "1/native/1",
		want: always + injected + `"tool":"read_file","path":"a.txt","abs":"*","args":{"path":"a.txt","line":2},"need_result":true,"flow":"native","risk":"low",
			"bytes":"*","output":"3 lines, 32 bytes","status":"applied"`,
		rows: "record injected",
	},
	{
		name:   "native search",
		script: `call grep {"pattern":"needle","path":"sub"}` + "\n", ref: "1/native/1",
		want: always + injected + `"tool":"grep","args":{"pattern":"needle","path":"sub"},"summary":"needle in sub","path":"sub","bytes":"*","output":"*","status":"applied"`,
		rows: "record injected",
	},
	{
		name:   "native tool that there is not",
		script: `call fetch {"url":"x"}` + "\n", ref: "1/native/1",
		want: always + injected + `"tool":"fetch","args":{"url":"x"},"status":"failed","code":"UNKNOWN_TOOL","error":"*"`,
		rows: "record injected",
	},
	{
		name:   "native arguments that cannot be read",
		script: "call grep {\"pattern\":\n", ref: "1/native/1",
		want: always + injected + `"tool":"grep","args":{"invalid_arguments":"{\"pattern\":"},"status":"failed","code":"INVALID_ARGUMENT","error":"*"`,
		rows: "record injected",
	},
	{
		name:   "native call behind a bash",
		set:    "allow=bash",
		script: "text <<END\n<tf-bash id=\"1\">true</tf-bash>\nEND\ncall grep {\"pattern\":\"x\"}\n", ref: "1/native/1",
		want: always + injected + `"tool":"grep","status":"skipped","code":"skipped","error":"*"`,
		rows: "record injected",
	},
	{
		name: "native bash that was allowed", answer: agent.AllowOnce,
		script: `call bash {"command":"echo ran; exit 1"}` + "\n", ref: "1/native/1",
		want: always + injected + `"tool":"bash","cmd":"echo ran; exit 1","args":{"command":"echo ran; exit 1"},"flow":"native","need_result":true,"risk":"high",
			"status":"applied","stdout":"ran\n","output":"1 line, 4 bytes","exit_code":1,"approval":{"action":"bash","decision":"once","by":"test","subject":"echo ran; exit 1"}`,
		rows: "approval intent outcome injected",
	},
	{
		name: "native bash that was refused", answer: agent.Deny,
		script: `call bash {"command":"echo ran"}` + "\n", ref: "1/native/1",
		want: always + injected + `"tool":"bash","cmd":"echo ran","status":"rejected","code":"PERMISSION_DENIED","error":"*"`,
		rows: "approval record injected",
	},
	{
		name: "native bash in the background, and its end", set: "allow=bash",
		script: `call bash {"command":"echo begun; exit 7","background":true}` + "\n", ref: "1/native/1",
		want: always + injected + `"args":{"command":"echo begun; exit 7","background":true},"status":"applied","stdout":"begun\n","exit_code":7,"notes":"*"`,
		rows: "intent outcome outcome injected",
	},
	{
		name: "native edit", set: "protocol=native",
		script: `call edit_file {"path":"a.txt","edits":[{"old":"two","new":"2"}]}` + "\n", ref: "1/native/1",
		want: always + injected + `"tool":"tf-edit","flow":"native","content":{"pairs":[{"old":"two","new":"2"}]},"rung":"exact","status":"applied"`,
		rows: "intent outcome injected",
	},
	{
		name: "command of a sub-agent, asked about", answer: agent.AllowOnce,
		script: "call task {\"task\":\"delete b\"}\nturn\ntext <<END\n<tf-delete id=\"1\" path=\"b.txt\"/>\nEND\n", ref: "1/task1.1.text/1",
		want: always + `"channel":"task1.1.text","status":"applied","approval":{"action":"delete","decision":"once"}`,
		rows: "approval intent outcome",
	},
	{
		name: "left waiting", answer: "leave", set: "approval_wait=20ms",
		script: "text <<END\n<tf-delete id=\"1\" path=\"b.txt\"/>\nEND\n", ref: "1/text/1",
		want: `"tool":"tf-delete","status":"staged","approval":{"action":"delete","approval":"*","target":"*","hash":"*"}`,
		rows: "approval intent",
	},
	{
		name: "left waiting, a native call", answer: "leave", set: "approval_wait=20ms",
		script: `call bash {"command":"echo ran"}` + "\n", ref: "1/native/1",
		want: `"tool":"bash","cmd":"echo ran","status":"staged","approval":{"action":"bash","approval":"*"},"injected":"*"`,
		rows: "approval intent injected",
	},
	{
		name: "left waiting, then answered elsewhere", answer: "leave", set: "approval_wait=20ms",
		script: `call bash {"command":"echo ran"}` + "\n", ref: "1/native/1",
		after: func(a *auditor, res agent.RunResult) {
			waiting, err := a.engine.Waiting(a.t.Context())
			require.NoError(a.t, err)
			_, err = a.engine.Resume(a.t.Context(), agent.ResumeRequest{Run: res.Run, By: "elsewhere", Answers: map[string]agent.Decision{waiting[0].ID: agent.AllowOnce}})
			require.NoError(a.t, err)
		},
		want: always + injected + `"status":"applied","stdout":"ran\n","exit_code":0,"approval":{"decision":"once","by":"elsewhere"}`,
		rows: "approval intent injected approval intent outcome injected",
	},
	{
		name: "left waiting, then given up", answer: "leave", set: "approval_wait=20ms",
		script: `call bash {"command":"echo ran"}` + "\n", ref: "1/native/1",
		after: func(a *auditor, res agent.RunResult) {
			require.NoError(a.t, a.engine.Abandon(a.t.Context(), res.Run))
		},
		want: `"status":"cancelled","code":"cancelled","error":"*"`,
		rows: "approval intent injected outcome",
	},
	{
		name:   "a person keeps one hunk and undoes another",
		script: "text <<END\n<tf-edit id=\"1\" path=\"a.txt\"><old>one</old><new>1</new></tf-edit>\n<tf-edit id=\"2\" path=\"a.txt\"><old>three</old><new>3</new></tf-edit>\nEND\n", ref: "1/text/2",
		after: func(a *auditor, _ agent.RunResult) {
			hunks := a.hunks()
			_, err := a.engine.Keep(a.t.Context(), agent.Selection{Hunks: hunks[:1], By: "test"})
			require.NoError(a.t, err)
			_, err = a.engine.Undo(a.t.Context(), agent.Selection{Hunks: hunks[1:], By: "test"})
			require.NoError(a.t, err)
		},
		want: `"status":"undone","review":{"action":"undo","path":"a.txt","hunks":"*","by":"test"}`,
		rows: "intent outcome review outcome",
	},
	{
		name: "a proposal that is accepted", set: "review=before",
		script: "text <<END\n<tf-edit id=\"1\" path=\"a.txt\"><old>one</old><new>1</new></tf-edit>\nEND\n", ref: "1/text/1",
		after: func(a *auditor, _ agent.RunResult) {
			_, err := a.engine.Keep(a.t.Context(), agent.Selection{All: true, Staged: true, By: "test"})
			require.NoError(a.t, err)
		},
		want: always + `"status":"applied","code":"accepted","content":{"pairs":[{"old":"one","new":"1"}]},"review":{"action":"accept","hunks":"*","by":"test"}`,
		rows: "intent review outcome",
	},
	{
		name: "a proposal that is rejected", set: "review=before",
		script: "text <<END\n<tf-edit id=\"1\" path=\"a.txt\"><old>one</old><new>1</new></tf-edit>\nEND\n", ref: "1/text/1",
		after: func(a *auditor, _ agent.RunResult) {
			_, err := a.engine.Undo(a.t.Context(), agent.Selection{All: true, Staged: true, By: "test"})
			require.NoError(a.t, err)
		},
		want: `"status":"rejected","code":"rejected","review":{"action":"reject","hunks":"*","by":"test"}`,
		rows: "intent review outcome",
	},
	{
		name:   "undone by command",
		script: "text <<END\n<tf-edit id=\"1\" path=\"a.txt\"><old>one</old><new>1</new></tf-edit>\nEND\n", ref: "1/text/1",
		after: func(a *auditor, res agent.RunResult) {
			_, err := a.engine.Undo(a.t.Context(), agent.Selection{Command: res.Run + "/1/text/1", By: "test"})
			require.NoError(a.t, err)
		},
		want: `"status":"undone","added":1,"review":{"action":"undo","by":"test"}`,
		rows: "intent outcome review outcome",
	},
	{
		name: "the user's own check", set: "verify=command verify_command=true",
		script: "text <<END\n<tf-touch id=\"1\" path=\"t\"/>\nEND\n", ref: "1/verify/1",
		want: `"tool":"verify","cmd":"true","status":"applied","exit_code":0`,
		rows: "intent outcome",
	},
	{
		name:   "told with the next task",
		script: "text <<END\n<tf-touch id=\"1\" path=\"t\"/>\nEND\n", ref: "1/text/1",
		after: func(a *auditor, res agent.RunResult) {
			_, err := a.engine.Run(a.t.Context(), agent.RunRequest{Session: res.Session, Task: "and now?"})
			require.NoError(a.t, err)
		},
		want: always + injected + `"status":"applied"`,
		rows: "intent outcome injected",
	},
	{
		name:   "a command with a key in it",
		script: "text <<END\n<tf-write id=\"1\" path=\"k.txt\">\nkey = sk-of-this-process-0123456789\n</tf-write>\nEND\n", ref: "1/text/1",
		want: always + `"content":{},"status":"applied","summary":"*"`,
		rows: "intent outcome",
	},
}

// TestAudit runs one command of each kind through the engine and reads every
// field of it back.
func TestAudit(t *testing.T) {
	for _, tt := range auditCases {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(tt.name, "bash") {
				t.Skip("the commands of this row are for a POSIX shell")
			}
			a := newAuditor(t, "turn\n"+tt.script+"turn\nrepeat\ntext \"Done.\"\n", tt.set, tt.answer)
			res, err := a.engine.Run(t.Context(), agent.RunRequest{Task: "x"})
			require.NoError(t, err)
			a.run = res.Run
			if tt.after != nil {
				tt.after(a, res)
			}
			require.NoError(t, a.engine.Close())
			got := a.show(tt.ref)
			if b := body(got, "approval"); b != nil {
				got["approval"] = b
			}
			if b := body(got, "review"); b != nil {
				got["review"] = b
			}
			var want map[string]any
			require.NoError(t, json.Unmarshal([]byte("{"+tt.want+"}"), &want))
			subset(t, "", want, got)
			assert.Equal(t, tt.rows, rows(got))
			for _, b := range []map[string]any{body(got, "approval"), body(got, "review")} {
				if b != nil {
					assert.Equal(t, got["id"], b["id"], "the answer names the command")
				}
			}
			if !strings.Contains(tt.want, `"injected"`) && !strings.Contains(tt.rows, "injected") {
				assert.NotContains(t, got, "injected", "nobody was told")
			}
			r := call(t.Context(), a.environ, "", "ledger", "verify", "--dir", a.dir)
			assert.Equal(t, exitOK, r.code, r.stderr)
		})
	}
}

// subset compares what is wanted with what is there; "*" is anything but nothing.
func subset(t *testing.T, at string, want, got any) {
	t.Helper()
	w, ok := want.(map[string]any)
	g, isMap := got.(map[string]any)
	switch {
	case want == "*":
		assert.NotEmpty(t, got, at)
	case ok && isMap:
		if len(w) == 0 {
			assert.Empty(t, g, at)
		}
		for k, v := range w {
			subset(t, at+"."+k, v, g[k])
		}
	default:
		assert.Equal(t, want, got, at)
	}
}

// hunks are the ids of what waits for a review.
func (a *auditor) hunks() []string {
	a.t.Helper()
	c, err := a.engine.Changes(a.t.Context(), agent.Selection{All: true})
	require.NoError(a.t, err)
	var out []string
	for _, f := range c.Files {
		for _, h := range f.Hunks {
			out = append(out, h.ID)
		}
	}
	require.NotEmpty(a.t, out)
	return out
}

// TestAuditOfARun: the rows that are about no command: what a person asked of
// the run, its end, the end of the session.
func TestAuditOfARun(t *testing.T) {
	a := newAuditor(t, "turn\ntext <<END\n<tf-touch id=\"1\" path=\"t\"/>\nmore\nEND\ncall grep {\"pattern\":\"x\"}\nturn\nexpect last-contains \"faster\"\ntext \"x\"\nhang\n", "", "")
	var steered, cancelled bool
	res, err := a.engine.Run(t.Context(), agent.RunRequest{Task: "x", Events: func(ev agent.Event) {
		if ev.Command != nil && !steered {
			steered = true
			assert.NoError(t, a.engine.Steer(ev.Run, "faster"))
		}
		if ev.Type == agent.TextDelta && ev.Turn == 2 && !cancelled {
			cancelled = true
			assert.True(t, a.engine.Cancel(ev.Run))
		}
	}})
	require.NoError(t, err)
	require.Equal(t, agent.StateCancelled, res.State)
	a.engine.EndSession(res.Session)
	require.NoError(t, a.engine.Close())
	r := call(t.Context(), a.environ, "", "ledger", "export", "--events", "--dir", a.dir)
	require.Equal(t, exitOK, r.code, r.stderr)
	for _, want := range []string{`"action":"steer","text":"faster"`, `"action":"cancel"`, `"type":"ledger.run.end"`, `"type":"ledger.session.end"`} {
		assert.Contains(t, r.stdout, want)
	}
	assert.Less(t, strings.Index(r.stdout, `"action":"steer"`), strings.Index(r.stdout, `"action":"cancel"`))
}

// TestAuditOfACancel: a command of the shell that is cut off in the middle, and
// one that had not begun.
func TestAuditOfACancel(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the command is for a POSIX shell")
	}
	a := newAuditor(t, "turn\ncall bash {\"command\":\"echo begun; sleep 600\"}\ncall bash {\"command\":\"echo second\"}\n", "allow=bash", "")
	res, err := a.engine.Run(t.Context(), agent.RunRequest{Task: "x", Events: func(ev agent.Event) {
		if ev.Type == agent.ToolOutput {
			a.engine.Cancel(ev.Run)
		}
	}})
	require.NoError(t, err)
	require.Equal(t, agent.StateCancelled, res.State)
	require.NoError(t, a.engine.Close())
	a.run = res.Run
	first, second := a.show("1/native/1"), a.show("1/native/2")
	subset(t, "first", map[string]any{"cmd": "echo begun; sleep 600", "status": "uncertain", "code": "killed", "error": "*", "stdout": "begun\n", "injected": "*"}, first)
	subset(t, "second", map[string]any{"cmd": "echo second", "status": "cancelled", "code": "cancelled", "error": "*", "injected": "*"}, second)
	assert.Equal(t, "intent outcome injected", rows(first))
	assert.Equal(t, "record injected", rows(second))
}
