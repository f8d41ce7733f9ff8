// Package vscode_test runs the extension in a real VS Code (code-server in
// Chromium) against the real server and a scripted model.
package vscode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestVSCode(t *testing.T) {
	many, edits := fortyEdits()
	w := open(t, map[string]string{
		"a.txt":      "one\ntwo\nthree\n",
		"c.txt":      "closed\n",
		"typing.txt": "top\nalpha\nbeta\ngamma\ndelta\nend\n",
		"cancel.txt": "one\ntwo\n",
		"crash.txt":  "one\ntwo\n",
		"look.txt":   "plain\n",
		"many.txt":   many,
		"ask.md":     "# Old\n\n- one\n- two\n",
		"draft.md":   "draft\n",
		// Used with verify = "command" only: nothing else here asks about it.
		".thinkflow/verify": "make test\n",
		"faulty.txt":        "badold stays\ngood\n",
	}, fmt.Sprintf(script, edits))
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"edits an open buffer through the stream", w.editsOpenBuffer},
		{"typing during the stream", w.typing},
		{"cancel", w.cancels},
		{"server crash and restart", w.crashes},
		{"from the palette", w.palette},
		{"new errors are mended", w.newErrors},
		{"a second task waits", w.queues},
		{"a running task is told something", w.tells},
		{"asks and fails", w.asks},
		{"mode and model", w.modes},
		{"trust", w.trusts},
		{"a run that something else started", w.foreign},
		{"forty edits", w.fortyEdits},
	} {
		// One window: what is left over from a failure would fail the next part, too.
		if !t.Run(part.name, part.run) {
			break
		}
	}
}

func (w *window) editsOpenBuffer(t *testing.T) {
	w.show(t, "a.txt")
	w.extension.ask(t, "cursor", object{"line": 0, "character": 3}, nil)
	w.extension.ask(t, "type", object{"text": " more\nonly in the buffer"}, nil)
	w.hasText(t, "a.txt", "one more\nonly in the buffer\ntwo\nthree\n")
	task := w.run("shout in a.txt")
	w.hasText(t, "a.txt", "one more\nONLY IN THE BUFFER\ntwo\nthree\n")
	var doing string
	w.extension.ask(t, "status", nil, &doing)
	if doing == "" {
		t.Error("the task has ended before the model has")
	}
	w.model.Release("edited")
	r := finish(t, task, "done")
	if r.Applied != 4 || r.Usage.Requests != 1 {
		t.Errorf("%d applied with %d requests, want 4 with 1", r.Applied, r.Usage.Requests)
	}
	w.hasText(t, "a.txt", "one more\nONLY IN THE BUFFER\ntwo\nthree\nand four\n")
	if d := w.document(t, "a.txt"); !d.Dirty {
		t.Error("the open document was saved")
	}
	for name, want := range map[string]string{"a.txt": "one\ntwo\nthree\n", "new/b.txt": "fresh\n", "c.txt": "CLOSED\n"} {
		if got := w.onDisk(t, name); got != want {
			t.Errorf("%s on disk: %q, want %q", name, got, want)
		}
	}
	w.extension.ask(t, "command", object{"text": "undo"}, nil)
	w.hasText(t, "a.txt", "one more\nONLY IN THE BUFFER\ntwo\nthree\n")
	w.extension.ask(t, "command", object{"text": "undo"}, nil)
	w.hasText(t, "a.txt", "one more\nonly in the buffer\ntwo\nthree\n")
}

// typing types with the real keyboard of the browser window.
func (w *window) typing(t *testing.T) {
	w.show(t, "typing.txt")
	w.extension.ask(t, "cursor", object{"line": 0, "character": 3}, nil)
	w.page.ask(t, "click", object{"selector": ".monaco-editor .view-line >> nth=0"}, nil)
	w.page.ask(t, "press", object{"key": "Control+Home"}, nil)
	const keys = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	task := w.run("change it while I type")
	typed := w.page.send("type", object{"text": keys, "delay": 15})
	r := finish(t, task, "done")
	if err := await("typing", typed, time.Minute, nil); err != nil {
		t.Fatal(err)
	}
	if r.Applied != 5 || r.Failed != 0 {
		t.Errorf("%d applied, %d failed, want 5 and 0", r.Applied, r.Failed)
	}
	w.hasText(t, "typing.txt", keys+"top\nALPHA\nBETA\nbeta two\nGAMMA\nDELTA\nend\nappended\n")
}

func (w *window) cancels(t *testing.T) {
	w.show(t, "cancel.txt")
	task := w.run("something that I cancel")
	w.hasText(t, "cancel.txt", "ONE\ntwo\n")
	began := time.Now()
	w.extension.ask(t, "command", object{"text": "thinkflow.cancel"}, nil)
	r := finish(t, task, "cancelled")
	t.Logf("cancelled within %s", time.Since(began).Round(time.Millisecond))
	if r.Applied != 1 {
		t.Errorf("%d applied, want 1", r.Applied)
	}
	if got := w.document(t, "cancel.txt").Text; got != "ONE\ntwo\n" {
		t.Errorf("the document afterwards:\n%s", got)
	}
}

func (w *window) crashes(t *testing.T) {
	w.show(t, "crash.txt")
	task := w.run("something before the crash")
	w.hasText(t, "crash.txt", "ONE\ntwo\n")
	killProgram(t, w.server)
	r := finish(t, task, "failed")
	if !strings.Contains(r.Reason, "the server ended") || !strings.Contains(r.Reason, "next task starts it again") {
		t.Errorf("reason: %s", r.Reason)
	}
	finish(t, w.run("something after the crash"), "done")
	w.hasText(t, "crash.txt", "ONE\nTWO\n")
}

// killProgram kills every process of a program that only this test runs.
func killProgram(t *testing.T, path string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	killed := 0
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != path {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			t.Fatal(err)
		}
		if p, err := os.FindProcess(pid); err == nil && p.Kill() == nil {
			killed++
		}
	}
	if killed != 1 {
		t.Fatalf("%d servers were running, want 1", killed)
	}
}

// palette goes the way of a person: command palette, input box, keyboard.
func (w *window) palette(t *testing.T) {
	w.show(t, "look.txt")
	w.page.ask(t, "press", object{"key": "F1"}, nil)
	w.page.ask(t, "wait", object{"selector": ".quick-input-widget input"}, nil)
	w.page.ask(t, "type", object{"text": "ThinkFlow: Run Task"}, nil)
	w.page.ask(t, "wait", object{"selector": ".quick-input-list .monaco-list-row:has-text('ThinkFlow: Run Task')"}, nil)
	w.screenshot(t, "palette")
	w.page.ask(t, "press", object{"key": "Enter"}, nil)
	w.page.ask(t, "wait", object{"selector": ".quick-input-widget:has-text('What is to be done')"}, nil)
	w.page.ask(t, "type", object{"text": "a change from the palette"}, nil)
	w.screenshot(t, "task")
	w.page.ask(t, "press", object{"key": "Enter"}, nil)
	w.hasText(t, "look.txt", "PLAIN\nand more\n")
	w.page.ask(t, "wait", object{"selector": ".statusbar-item:has-text('ThinkFlow: ✓1')"}, nil)
	w.screenshot(t, "answering")
	w.model.Release("looked")
	text := w.answered(t, "a change from the palette")
	inOrder(t, text, "> A person looks", "I change **one** thing", "✓ edit look.txt  +2 −1", "And that is all.", "— done · 1 command")
	w.screenshot(t, "done")
}

func (w *window) fortyEdits(t *testing.T) {
	w.show(t, "many.txt")
	began := time.Now()
	r := finish(t, w.run("forty edits please"), "done")
	t.Logf("40 edits within %s", time.Since(began).Round(time.Millisecond))
	if r.Applied != 40 {
		t.Errorf("%d applied, want 40", r.Applied)
	}
	text := w.document(t, "many.txt").Text
	if n := strings.Count(text, "LINE"); n != 40 {
		t.Errorf("%d lines changed, want 40", n)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "many.txt")); err != nil {
		t.Error(err)
	}
}

// answered is what the answer says of a task, once the task is over.
func (w *window) answered(t *testing.T, task string) string {
	t.Helper()
	var text string
	eventually(t, "the answer to "+task, 30*time.Second, func() error {
		var all, doing string
		w.extension.ask(t, "answer", nil, &all)
		w.extension.ask(t, "status", nil, &doing)
		_, after, found := strings.Cut(all, "# "+task+"\n")
		text, _, _ = strings.Cut(after, "\n# ")
		if !found || !strings.Contains(text, "\n— ") {
			return fmt.Errorf("it has no end:\n%s", all)
		}
		return nil
	})
	return text
}

// inOrder checks that the parts follow each other in the text.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	at := 0
	for _, part := range parts {
		i := strings.Index(text[at:], part)
		if i < 0 {
			t.Errorf("%q is not in it, or not in its place:\n%s", part, text)
			return
		}
		at += i + len(part)
	}
}

// newErrors: what another extension says of an edit is told to the model, once;
// what it said before is not.
func (w *window) newErrors(t *testing.T) {
	w.show(t, "faulty.txt")
	w.extension.ask(t, "faults", object{"text": `bad\w*`}, nil)
	r := finish(t, w.run("an edit that brings in an error"), "done")
	if r.Usage.Requests != 2 || r.Applied != 2 || !strings.Contains(r.Verify, "1 new error") {
		t.Errorf("%d applied with %d requests (%s), want 2 with 2", r.Applied, r.Usage.Requests, r.Verify)
	}
	w.hasText(t, "faulty.txt", "badold stays\nbetter\n")
	text := w.answered(t, "an edit that brings in an error")
	inOrder(t, text, "✓ edit faulty.txt", "That is it.", "✗ verify 1 new error faulty.txt:2:1", "I mend it.", "✓ edit faulty.txt", "— done")
	w.screenshot(t, "mended")
	r = finish(t, w.run("an edit that brings in nothing new"), "done")
	if r.Usage.Requests != 1 || r.Verify != "no new errors" {
		t.Errorf("%d requests (%s), want 1: an old error was told", r.Usage.Requests, r.Verify)
	}
	w.hasText(t, "faulty.txt", "badold stays\nbest\n")
}

// queues: a task given while another goes on begins when that one is over.
func (w *window) queues(t *testing.T) {
	first := w.run("the first of two")
	eventually(t, "the first answers", 30*time.Second, func() error {
		var all string
		w.extension.ask(t, "answer", nil, &all)
		if !strings.HasSuffix(all, "one,") {
			return fmt.Errorf("it is not there yet")
		}
		return nil
	})
	second := w.run("the second of two")
	w.says(t, "(1 more waiting)")
	w.screenshot(t, "queued")
	w.model.Release("first")
	finish(t, first, "done")
	finish(t, second, "done")
	if text := w.answered(t, "the first of two"); !strings.Contains(text, "one, and done.") || strings.Contains(text, "Second") {
		t.Errorf("the first answer:\n%s", text)
	}
	if text := w.answered(t, "the second of two"); !strings.Contains(text, "Second answer.") {
		t.Errorf("the second answer:\n%s", text)
	}
}

// tells: the way of a person who writes while a task goes on.
func (w *window) tells(t *testing.T) {
	task := w.run("a task that is told something")
	w.page.ask(t, "wait", object{"selector": ".statusbar-item:has-text('ThinkFlow: answering')"}, nil)
	w.extension.send("command", object{"text": "thinkflow.run"})
	w.page.ask(t, "wait", object{"selector": ".quick-input-widget:has-text('A task is going on')"}, nil)
	w.page.ask(t, "type", object{"text": "and mind the gap"}, nil)
	w.page.ask(t, "press", object{"key": "Enter"}, nil)
	w.page.ask(t, "wait", object{"selector": ".quick-input-list .monaco-list-row:has-text('Tell the Running Task')"}, nil)
	w.screenshot(t, "besides")
	w.page.ask(t, "press", object{"key": "ArrowDown"}, nil)
	w.page.ask(t, "press", object{"key": "Enter"}, nil)
	eventually(t, "it is told", 30*time.Second, func() error {
		var all string
		w.extension.ask(t, "answer", nil, &all)
		if !strings.Contains(all, "> and mind the gap") {
			return fmt.Errorf("it does not stand in the answer")
		}
		return nil
	})
	w.model.Release("told")
	finish(t, task, "done")
	if text := w.answered(t, "a task that is told something"); !strings.Contains(text, "I mind it.") {
		t.Errorf("the answer:\n%s", text)
	}
}

// asks: a failing edit, a command that is allowed and a deletion that is not, with
// the buttons that a person has.
func (w *window) asks(t *testing.T) {
	w.show(t, "ask.md")
	const task = "a task that asks and fails"
	running := w.run(task)
	w.page.ask(t, "wait", object{"selector": ".statusbar-item:has-text('asks to run echo seen')"}, nil)
	w.page.ask(t, "wait", object{"selector": ".notification-toast:has-text('wants to run echo seen') .monaco-button:has-text('Deny')"}, nil)
	w.screenshot(t, "asks")
	const asks = ".notification-toast:has-text('wants to run echo seen') .monaco-button"
	var buttons []string
	w.page.ask(t, "text", object{"selector": asks}, &buttons)
	if want := []string{"Allow Once", "Allow for This Session", "More…", "Deny"}; !slices.Equal(buttons, want) {
		t.Errorf("the buttons are %q, want %q", buttons, want)
	}
	// What is behind the last button can be looked at and left again.
	w.page.ask(t, "click", object{"selector": asks + ":text-is('More…')"}, nil)
	w.page.ask(t, "wait", object{"selector": ".quick-input-list .monaco-list-row:has-text('with Network and .git')"}, nil)
	w.screenshot(t, "asks-more")
	w.page.ask(t, "press", object{"key": "Escape"}, nil)
	w.page.ask(t, "click", object{"selector": asks + ":text-is('Allow Once')"}, nil)
	w.page.ask(t, "wait", object{"selector": ".notification-toast:has-text('wants to delete draft.md')"}, nil)
	w.screenshot(t, "asks-again")
	w.page.ask(t, "click", object{"selector": ".notification-toast:has-text('wants to delete draft.md') .monaco-button:text-is('Deny')"}, nil)
	finish(t, running, "done")
	w.hasText(t, "ask.md", "# New\n\n- first\n- second\n- two\n")
	if got := w.onDisk(t, "draft.md"); got != "draft\n" {
		t.Errorf("draft.md: %q", got)
	}
	inOrder(t, w.answered(t, task),
		"I tidy up.", "✓ edit ask.md  +1 −1", "Then the list", "✗ edit ask.md", "\n\nThat line is not there", "✓ edit ask.md  +2 −1",
		"? asks to run echo seen", "✓ allowed once: run echo seen", "✓ bash echo seen  exit 0", "It is as it should be",
		"? asks to delete draft.md", "✗ denied: delete draft.md", "✗ delete draft.md", "I keep the draft.", "— done")
	w.page.ask(t, "wait", object{"selector": ".codelens-decoration:has-text('ThinkFlow: keep this change (+2 −1)')"}, nil)
	w.screenshot(t, "asked")
}

// modes: what is switched counts for the next task, and for a server that is
// started anew.
func (w *window) modes(t *testing.T) {
	w.extension.send("command", object{"text": "thinkflow.mode"})
	w.page.ask(t, "wait", object{"selector": ".quick-input-list .monaco-list-row:has-text('Answers, changes nothing')"}, nil)
	w.screenshot(t, "mode")
	w.page.ask(t, "type", object{"text": "ask"}, nil)
	w.page.ask(t, "press", object{"key": "Enter"}, nil)
	w.page.ask(t, "wait", object{"selector": ".statusbar-item:has-text('ThinkFlow (ask)')"}, nil)
	w.extension.send("command", object{"text": "thinkflow.model"})
	w.page.ask(t, "wait", object{"selector": ".quick-input-list .monaco-list-row:has-text('scripted')"}, nil)
	w.screenshot(t, "model")
	w.page.ask(t, "press", object{"key": "Enter"}, nil)
	if r := finish(t, w.run("try it once"), "done"); r.Applied != 0 {
		t.Errorf("%d applied in mode ask", r.Applied)
	}
	w.extension.ask(t, "command", object{"text": "thinkflow.restart"}, nil)
	if r := finish(t, w.run("try it twice"), "done"); r.Applied != 0 {
		t.Errorf("%d applied in mode ask after a restart", r.Applied)
	}
	w.extension.ask(t, "command", object{"text": "thinkflow.mode", "args": []string{"edit"}}, nil)
	if r := finish(t, w.run("try it thrice"), "done"); r.Applied != 1 {
		t.Errorf("%d applied in mode edit", r.Applied)
	}
}

// trusts: what a person agrees to is what they look at.
func (w *window) trusts(t *testing.T) {
	for _, state := range []string{"not answered", "trusted"} {
		w.extension.send("command", object{"text": "thinkflow.trust"})
		w.page.ask(t, "wait", object{"selector": ".quick-input-list .monaco-list-row:has-text('.thinkflow/verify'):has-text('" + state + "')"}, nil)
		w.page.ask(t, "press", object{"key": "Enter"}, nil)
		w.page.ask(t, "wait", object{"selector": ".quick-input-list .monaco-list-row:has-text('Trust Exactly This Text')"}, nil)
		w.page.ask(t, "wait", object{"selector": ".monaco-editor .view-line:has-text('make test')"}, nil)
		w.screenshot(t, "trust")
		w.page.ask(t, "press", object{"key": "Enter"}, nil)
		w.page.ask(t, "wait", object{"selector": ".statusbar-item:has-text('.thinkflow/verify is trusted')"}, nil)
	}
}

// foreign: a run that another extension, or a code action, started is shown like
// one of ours, and a task waits for it.
func (w *window) foreign(t *testing.T) {
	w.extension.ask(t, "command", object{"text": "thinkflow.server.run", "args": []any{object{"task": "called from elsewhere"}}}, nil)
	w.hasText(t, "look.txt", "plain again\nand more\n")
	behind := w.run("behind the other")
	w.says(t, "✓1", "(1 more waiting)")
	w.model.Release("elsewhere")
	finish(t, behind, "done")
	inOrder(t, w.answered(t, "called from elsewhere"), "✓ edit look.txt", "I was called.", "— done")
	inOrder(t, w.answered(t, "behind the other"), "Now it is my turn.", "— done")
}
