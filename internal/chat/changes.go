package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"thinkflow/agent"
	"thinkflow/internal/term"
)

// diff shows what the session's tasks changed, as it stands now: the sum, not
// the single steps; what was undone is not in it.
func (m *model) diff(arg string) tea.Cmd {
	engine, ctx, runs := m.o.Engine, m.ctx, slices.Clone(m.runs)
	return m.show(func(s *term.Renderer) error {
		files, err := sessionChanges(ctx, engine, runs)
		if err != nil {
			return err
		}
		files = slices.DeleteFunc(files, func(f agent.FileChanges) bool {
			return arg != "" && f.Path != arg && !strings.HasPrefix(f.Path, strings.TrimSuffix(arg, "/")+"/")
		})
		if len(files) == 0 {
			s.Notice("nothing is changed")
		}
		for _, f := range files {
			s.Diff(f.Path, f.Added, f.Removed, unified(f))
		}
		return nil
	})
}

// sessionChanges are the changes of these runs.
func sessionChanges(ctx context.Context, engine Engine, runs []string) ([]agent.FileChanges, error) {
	var out []agent.FileChanges
	for _, run := range runs { // those of another process are read from the ledger
		if _, err := engine.Changes(ctx, agent.Selection{Run: run}); err != nil {
			return nil, err
		}
	}
	all, err := engine.Changes(ctx, agent.Selection{All: true})
	if err != nil {
		return nil, err
	}
	of := func(h agent.Hunk) bool {
		return slices.ContainsFunc(h.Commands, func(key string) bool {
			run, _, _ := strings.Cut(key, "/")
			return slices.Contains(runs, run)
		})
	}
	for _, f := range all.Files {
		if f.Hunks = slices.DeleteFunc(slices.Clone(f.Hunks), func(h agent.Hunk) bool { return !of(h) }); len(f.Hunks) > 0 {
			out = append(out, f)
		}
	}
	return out, nil
}

// unified words hunks as a diff.
func unified(f agent.FileChanges) string {
	var b strings.Builder
	side := func(mark, text string) {
		if text == "" {
			return
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			b.WriteString(mark + line + "\n")
		}
	}
	for _, h := range f.Hunks {
		if h.From != "" {
			fmt.Fprintf(&b, "moved from %s\n", h.From)
		}
		fmt.Fprintf(&b, "@@ -%d +%d @@\n", h.BaseStartLine+1, h.StartLine+1)
		side("-", h.Old)
		side("+", h.New)
	}
	return b.String()
}

// undo takes back what the last task changed that is not undone yet.
func (m *model) undo(string) tea.Cmd {
	if len(m.runs) == 0 {
		m.screen.Notice("nothing is left to undo in this session; thinkflow ledger list has what was done before")
		return nil
	}
	run := m.runs[len(m.runs)-1]
	engine, ctx := m.o.Engine, m.ctx
	return func() tea.Msg {
		res, err := engine.Undo(ctx, agent.Selection{Run: run, By: "terminal"})
		return undid{run, res, err}
	}
}

// undid tells what was taken back.
func (m *model) undid(u undid) {
	if u.err != nil {
		m.screen.Notice(u.err.Error())
	}
	for _, p := range u.res.Problems {
		m.screen.Notice(strings.TrimSpace(p.Path+" ") + ": " + p.Reason)
	}
	switch n := len(u.res.Files); {
	case u.err != nil || len(u.res.Problems) > 0 && n == 0:
		return
	case n == 0:
		m.screen.Notice("the last task changed nothing that is still there")
	default:
		m.screen.Notice("undone: " + strings.Join(u.res.Files, ", "))
	}
	m.runs = slices.DeleteFunc(m.runs, func(id string) bool { return id == u.run })
}

// resume goes on with the last run if it is not finished, else with another
// conversation.
func (m *model) resume(arg string) tea.Cmd {
	if arg == "" && m.unfinished != "" {
		return m.goOn(m.unfinished)
	}
	engine, ctx := m.o.Engine, m.ctx
	if arg != "" {
		return func() tea.Msg {
			s, err := findSession(ctx, engine, arg)
			if err != nil {
				return notice(err.Error())
			}
			return tookUp(s)
		}
	}
	return m.show(func(s *term.Renderer) error {
		all, err := engine.Sessions(ctx, 12)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, i := range all {
			if i.ID != m.session {
				rows = append(rows, []string{i.ID, i.Last.Local().Format("01-02 15:04"), i.State, i.Task})
			}
		}
		if len(rows) == 0 {
			s.Notice("there is no earlier conversation here")
			return nil
		}
		s.Table([]string{"session", "last", "state", "task"}, rows)
		s.Dim("/resume SESSION goes on with one; the beginning of its id will do")
		return nil
	})
}

// Last names the newest conversation.
const Last = "last"

// findSession finds a conversation by its id, the beginning of it, or Last.
func findSession(ctx context.Context, engine Engine, ref string) (agent.SessionDetail, error) {
	all, err := engine.Sessions(ctx, 0)
	if err != nil {
		return agent.SessionDetail{}, err
	}
	var found []string
	for _, s := range all {
		if strings.HasPrefix(s.ID, ref) || ref == Last && len(found) == 0 {
			found = append(found, s.ID)
		}
	}
	switch {
	case len(all) == 0:
		return agent.SessionDetail{}, fmt.Errorf("there is no earlier conversation here; leave --resume out")
	case len(found) == 0:
		return agent.SessionDetail{}, fmt.Errorf("there is no conversation %s; thinkflow sessions lists them", ref)
	case len(found) > 1:
		return agent.SessionDetail{}, fmt.Errorf("%d conversations begin with %s; give more of the id", len(found), ref)
	}
	return engine.Session(ctx, found[0])
}

// takeUp goes on with an earlier conversation.
func (m *model) takeUp(s agent.SessionDetail) {
	m.session, m.runs, m.unfinished, m.total, m.tasks = s.ID, nil, "", agent.Usage{}, 0
	for _, r := range slices.Backward(s.Members) { // the newest comes first
		m.runs = append(m.runs, r.ID)
	}
	m.change(agent.SessionSettings{})
	m.screen.Said(s.Task, fmt.Sprintf("%s of %d in this conversation · %s", "the last task", s.Runs, s.State))
	if s.Resumable && s.State != string(agent.StateDone) {
		m.unfinished = s.LastRun
		m.screen.Hints([]string{"/resume goes on with it, or say what is to be done."})
	}
}
