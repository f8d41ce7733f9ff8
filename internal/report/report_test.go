package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"thinkflow/agent"
	"thinkflow/internal/chromium"
	"thinkflow/internal/redact"
	"thinkflow/ledger"
)

// What a page must not take for more than text.
const hostile = "</script><script>document.title='pwned'</script>\"><img src=http://evil.example/x onerror=alert(1)>\x1b[31mred\u202egnp.exe"

// recorder writes a run into a ledger, as the agent would.
type recorder struct {
	t   testing.TB
	led *ledger.Ledger
	seq int64
	at  time.Time
}

func record(t testing.TB) *recorder {
	led, err := ledger.Open(t.Context(), ledger.Options{Dir: t.TempDir(), Workspace: "/work"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = led.Close() })
	return &recorder{t: t, led: led, at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func (r *recorder) event(ev agent.Event, after time.Duration) {
	r.seq++
	r.at = r.at.Add(after)
	ev.Seq, ev.Run, ev.Time = r.seq, "run1", r.at
	body, err := json.Marshal(ev)
	require.NoError(r.t, err)
	require.NoError(r.t, r.led.Event("run1", ev.Seq, string(ev.Type), body))
}

func (r *recorder) begin(task string) {
	require.NoError(r.t, r.led.StartRun(ledger.Run{ID: "run1", Session: "s", Task: task, Model: hostile, Dir: "/work/" + hostile, Started: r.at}))
	r.event(agent.Event{Type: agent.RunStarted, Task: task}, 0)
	r.event(agent.Event{Type: agent.TurnStarted, Turn: 1}, time.Millisecond)
}

func (r *recorder) command(c ledger.Command, diff string) {
	require.NoError(r.t, r.led.RecordWith(c, nil))
	r.event(agent.Event{Type: agent.CommandStarted, Turn: c.Turn, Command: &agent.CommandEvent{ID: c.ID, Channel: c.Channel, Name: c.Tool, Path: c.Path}}, 20*time.Millisecond)
	r.event(agent.Event{Type: agent.CommandCompleted, Turn: c.Turn, Command: &agent.CommandEvent{
		ID: c.ID, Channel: c.Channel, Name: c.Tool, Path: c.Path, Status: string(c.Status), Diff: diff, Micros: 1500, ExitCode: c.ExitCode,
	}}, 5*time.Millisecond)
}

func (r *recorder) end() {
	res := agent.RunResult{State: agent.StateFailed, Text: "The end. " + hostile, Reason: hostile}
	r.event(agent.Event{Type: agent.UsageReported, Turn: 1, Usage: &agent.Usage{Requests: 1, InputTokens: 1000, OutputTokens: 50, Cost: 0.0123}}, 0)
	r.event(agent.Event{Type: agent.RunFailed, Result: &res}, time.Millisecond)
	require.NoError(r.t, r.led.EndRun("run1", "failed", hostile, json.RawMessage(`{"requests":1,"input_tokens":1000,"output_tokens":50,"cost":0.0123}`)))
}

func (r *recorder) page(clean func(string) string) []byte {
	r.t.Helper()
	run, err := Load(r.t.Context(), r.led, "run1")
	require.NoError(r.t, err)
	var b bytes.Buffer
	require.NoError(r.t, Write(&b, run, clean))
	return b.Bytes()
}

const token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"

// everything is a run in which each text of the page is hostile or a secret.
func everything(t testing.TB) *recorder {
	r := record(t)
	bad := hostile + " " + token
	r.begin("Do it. " + bad)
	r.event(agent.Event{Type: agent.TextDelta, Turn: 1, Text: "I say " + bad}, 10*time.Millisecond)
	one, key := 1, func(id int) ledger.Key { return ledger.Key{Run: "run1", Turn: 1, Channel: "text", ID: id} }
	r.command(ledger.Command{Key: key(1), Announced: ledger.Announced{Tool: "tf-edit", Path: "a" + bad}, Status: ledger.StatusApplied, Added: 1, Removed: 1, Notes: []string{bad}}, "@@ -1 +1 @@\n-x\n+"+bad+"\n")
	r.command(ledger.Command{Key: key(2), Announced: ledger.Announced{Tool: "tf-edit", Path: "b"}, Status: ledger.StatusFailed, Code: "no_match", Error: bad}, "")
	r.command(ledger.Command{Key: key(3), Announced: ledger.Announced{Tool: "tf-bash", Cmd: bad}, Status: ledger.StatusApplied, Stdout: bad + "\n", Stderr: bad, ExitCode: &one}, "")
	r.command(ledger.Command{Key: key(4), Announced: ledger.Announced{Tool: "tf-write", Path: ".env", Secret: true, Abs: "/work/.env"}, Status: ledger.StatusApplied}, "@@ -0 +1 @@\n+PASSWORD=hidden-in-the-diff\n")
	require.NoError(t, r.led.Approval(key(5), ledger.Approval{ID: "a1", Action: "delete", Target: bad}))
	require.NoError(t, r.led.Approval(key(5), ledger.Approval{ID: "a1", Action: "delete", Target: bad, Decision: "once", By: "editor"}))
	r.event(agent.Event{Type: agent.ApprovalRequested, Turn: 1, Approval: &agent.ApprovalEvent{Action: "delete", Target: bad}}, time.Millisecond)
	r.command(ledger.Command{Key: key(5), Announced: ledger.Announced{Tool: "tf-delete", Path: "c"}, Status: ledger.StatusApplied}, "")
	n := ledger.Key{Run: "run1", Turn: 1, Channel: "native", ID: 1}
	r.event(agent.Event{Type: agent.ToolStarted, Turn: 1, Tool: &agent.ToolEvent{CallID: "c", Name: bad}}, 0)
	r.event(agent.Event{Type: agent.ToolCompleted, Turn: 1, Tool: &agent.ToolEvent{CallID: "c", Name: bad, Status: "ok", Summary: bad}}, time.Second)
	require.NoError(t, r.led.Record(ledger.Command{Key: n, Announced: ledger.Announced{Tool: bad, Args: json.RawMessage(`{"x":"<script>"}`), Summary: bad, Flow: ledger.FlowNative}, Status: ledger.StatusApplied}))
	r.end()
	return r
}

func clean(s string) string { return (&redact.Redactor{}).String(s) }

// TestPageIsInertAndLoadsNothing: what is text stays text, whatever it looks
// like, and the page needs nothing but itself.
func TestPageIsInertAndLoadsNothing(t *testing.T) {
	page := everything(t).page(clean)
	doc, err := html.Parse(bytes.NewReader(page))
	require.NoError(t, err)
	allowed := map[string]bool{}
	for _, e := range strings.Fields(`html head meta title style body main h1 h2 h3 div span p b small i table thead tbody tr th td
		details summary pre svg rect text line footer`) {
		allowed[e] = true
	}
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.ElementNode {
			assert.True(t, allowed[n.Data], "an element %s came out of a text", n.Data)
			for _, a := range n.Attr {
				assert.False(t, strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" || a.Key == "srcset", "%s=%q", a.Key, a.Val)
				assert.NotContains(t, a.Val, "url(", a.Key)
			}
			if n.Data == "style" {
				assert.NotRegexp(t, `@import|url\(`, n.FirstChild.Data)
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(doc)
	text := string(page)
	for _, raw := range []string{"\x1b", "\u202e"} {
		assert.NotContains(t, text, raw, "characters that hide themselves are shown")
	}
	for _, secret := range []string{token, "hidden-in-the-diff"} {
		assert.NotContains(t, text, secret)
	}
	for _, want := range []string{"exit 1", "asked (delete): once, by editor", "the file may hold secrets", "0.0123", "I say", "What went wrong"} {
		assert.Contains(t, text, want)
	}
}

// TestPageInABrowser: no script runs, nothing is asked for, and the page shows
// what it says. THINKFLOW_SCREENSHOT names a folder for pictures, light and dark.
func TestPageInABrowser(t *testing.T) {
	browser := chromium.Find(t)
	file := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(file, everything(t).page(clean), 0o644))
	dom, err := browser.DOM(t.Context(), t.TempDir(), "file://"+filepath.ToSlash(file))
	require.NoError(t, err)
	assert.Regexp(t, `(?s)<title>Do it\..*· ThinkFlow</title>`, dom, "no script changed it")
	assert.NotRegexp(t, `<(script|img)[ >]`, dom)
	if dir := os.Getenv("THINKFLOW_SCREENSHOT"); dir != "" {
		for name, dark := range map[string]bool{"light": false, "dark": true} {
			require.NoError(t, browser.Screenshot(t.Context(), t.TempDir(), "file://"+filepath.ToSlash(file), filepath.Join(dir, name+".png"), 1200, 1800, dark))
		}
	}
}

// TestPageOfALongRun: 5,000 commands with diffs stay a page that a browser opens
// at once, and every command is on it.
func TestPageOfALongRun(t *testing.T) {
	r := record(t)
	r.begin("Change everything.")
	diff := "@@ -1,20 +1,20 @@\n" + strings.Repeat("-an old line of some length, as lines are\n+a new line of some length, as lines are\n", 20)
	const commands = 5000
	for i := range commands {
		turn := 1 + i/50
		if i%50 == 0 && i > 0 {
			r.event(agent.Event{Type: agent.TurnStarted, Turn: turn}, 10*time.Millisecond)
		}
		status := ledger.StatusApplied
		if i%10 == 9 {
			status = ledger.StatusFailed
		}
		r.command(ledger.Command{Key: ledger.Key{Run: "run1", Turn: turn, Channel: "text", ID: i%50 + 1}, Announced: ledger.Announced{Tool: "tf-edit", Path: fmt.Sprintf("src/file%d.go", i)}, Status: status, Added: 20, Removed: 20, Error: map[bool]string{true: "no"}[status == ledger.StatusFailed]}, diff)
	}
	r.end()
	begun := time.Now()
	page := r.page(clean)
	t.Logf("%d commands: %d bytes in %s", commands, len(page), time.Since(begun))
	assert.Less(t, len(page), 8<<20)
	assert.Less(t, bytes.Count(page, []byte("<rect")), 3000)
	for _, i := range []int{0, 2500, commands - 1} {
		assert.Contains(t, string(page), fmt.Sprintf("src/file%d.go", i))
	}
	assert.Contains(t, string(page), "Its text is left out")
	_, err := html.Parse(bytes.NewReader(page))
	require.NoError(t, err)
}

// TestChart: one lane after the other, pauses cut out, no span outside.
func TestChart(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	run := &Run{Info: ledger.Run{Started: start}, Ended: at(7201), Spans: []Span{
		{LaneStream, "text", at(0), at(1), "one"}, {LanePerson, "person", at(7200), at(7201), "two"},
	}}
	svg := string(chart(run))
	assert.Contains(t, svg, "nothing happened for 1 h 59 min")
	for _, m := range regexp.MustCompile(`<rect class="(text|person)" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"`).FindAllStringSubmatch(svg, -1) {
		var x, w float64
		_, err := fmt.Sscan(m[2]+" "+m[3], &x, &w)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, x, chartLeft)
		assert.LessOrEqual(t, x+w, chartWidth-chartRight+0.1)
		assert.Greater(t, w, 100.0, "both are to be seen")
	}
	dec := html.NewTokenizer(strings.NewReader(svg))
	for dec.Next() != html.ErrorToken {
	}
	assert.ErrorIs(t, dec.Err(), io.EOF)
}
