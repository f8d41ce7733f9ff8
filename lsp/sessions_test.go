package lsp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"thinkflow/agent"
	"thinkflow/internal/fakeeditor"
)

// TestSessionsAndRewind: what was done is listed, taken back to before a message,
// and what cannot be gone on with is an error that says so.
func TestSessionsAndRewind(t *testing.T) {
	r := startReal(t, "vscode", fakeeditor.Options{}, "after", map[string]string{"a.txt": "one\n"})
	onDisk := func() string {
		data, err := os.ReadFile(filepath.Join(r.root, "a.txt"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	res := r.say("<tf-edit id=\"1\" path=\"a.txt\"><old>one</old><new>two</new></tf-edit>\n")
	if res.State != agent.StateDone || onDisk() != "two\n" {
		t.Fatalf("%+v, the file holds %q", res, onDisk())
	}

	var list struct {
		Sessions []struct {
			ID string `json:"id"`
		} `json:"sessions"`
		Waiting []any `json:"waiting"`
	}
	r.Request("thinkflow/sessions", map[string]any{}, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].ID != res.Session || len(list.Waiting) != 0 {
		t.Fatalf("sessions: %+v, want %s", list, res.Session)
	}
	var detail struct {
		Members []struct {
			ID string `json:"id"`
		} `json:"members"`
	}
	r.Request("thinkflow/session", map[string]any{"session": res.Session}, &detail)
	if len(detail.Members) != 1 || detail.Members[0].ID != res.Run {
		t.Fatalf("session: %+v, want run %s", detail, res.Run)
	}

	rewind := func(message int, dryRun bool) agent.RewindResult {
		t.Helper()
		var got agent.RewindResult
		if err := r.request("thinkflow/rewind", map[string]any{"session": res.Session, "message": message, "dryRun": dryRun}, &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := rewind(0, false); len(got.Points) != 1 || got.Points[0].Run != res.Run || onDisk() != "two\n" {
		t.Errorf("points: %+v, the file holds %q", got.Points, onDisk())
	}
	if got := rewind(1, true); len(got.Effects) != 1 || got.Effects[0].Path != "a.txt" || onDisk() != "two\n" {
		t.Errorf("dry run: %+v, the file holds %q", got, onDisk())
	}
	if got := rewind(1, false); len(got.Problems) != 0 || onDisk() != "one\n" {
		t.Errorf("rewound: %+v, the file holds %q", got, onDisk())
	}

	for _, c := range []struct {
		method string
		params map[string]any
		says   string
	}{
		{"thinkflow/session", map[string]any{"session": "nobody"}, "nobody"},
		{"thinkflow/rewind", map[string]any{"session": "nobody", "message": 1}, "nobody"},
		{"thinkflow/resume", map[string]any{"runId": res.Run}, "is done"},
		{"thinkflow/resume", map[string]any{"runId": "nothing"}, "nothing"},
	} {
		if err := r.request(c.method, c.params, nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %v: %v, want an error about %q", c.method, c.params, err, c.says)
		}
	}
}
