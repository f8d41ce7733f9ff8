package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// lists are rules by layer and verdict, as in a configuration.
type lists struct {
	layer            Layer
	allow, ask, deny []string
}

func engine(t testing.TB, all ...lists) *Engine {
	t.Helper()
	var rules []Rule
	for _, l := range all {
		for v, lines := range map[Verdict][]string{Allow: l.allow, Ask: l.ask, Deny: l.deny} {
			got, err := Parse(l.layer, v, "", lines)
			require.NoError(t, err)
			rules = append(rules, got...)
		}
	}
	e, err := New(rules)
	require.NoError(t, err)
	return e
}

func TestDecide(t *testing.T) {
	user := func(allow, ask, deny []string) lists { return lists{User, allow, ask, deny} }
	for _, c := range []struct {
		name    string
		lists   []lists
		action  Action
		subject string
		dir     bool
		want    Verdict
		layer   Layer
		rule    string
	}{
		{"read", nil, Read, "a.go", false, Allow, Default, "read is allowed"},
		{"write", nil, Write, "a.go", false, Allow, Default, "write is allowed"},
		{"delete", nil, Delete, "a.go", false, Ask, Default, "deleting asks"},
		{"bash", nil, Bash, "ls", false, Ask, Default, "ls is not on the allow list"},
		{"net", nil, Net, "example.org:443", false, Ask, Default, "network"},
		{"tool", nil, Tool("x"), "", false, Ask, Default, "tools ask"},
		{"protected", nil, Protected, ".vscode/tasks.json", false, Ask, Default, "protected"},
		{"secrets", nil, Secrets, ".env", false, Ask, Default, "secrets"},

		{"allow", []lists{user([]string{"delete build/"}, nil, nil)}, Delete, "build/x/y", false, Allow, User, "allow delete build/"},
		{"allow of another path", []lists{user([]string{"delete build/"}, nil, nil)}, Delete, "src/x", false, Ask, Default, "deleting asks"},
		{"ask over allow", []lists{user([]string{"write"}, []string{"write *.sql"}, nil)}, Write, "db/a.sql", false, Ask, User, "ask write *.sql"},
		{"deny over ask", []lists{user(nil, []string{"write"}, []string{"write *.sql"})}, Write, "db/a.sql", false, Deny, User, "deny write *.sql"},
		{"allow over the default only", []lists{user([]string{"delete"}, []string{"delete"}, nil)}, Delete, "a", false, Ask, User, "ask delete"},
		{"lifted", []lists{user(nil, nil, []string{"read .env", "read .env.*", "read !.env.example"})}, Read, ".env.example", false, Allow, Default, ""},
		{"not lifted", []lists{user(nil, nil, []string{"read .env", "read .env.*", "read !.env.example"})}, Read, "src/.ENV.local", false, Deny, User, "deny read .env.*"},
		{"what is in a denied folder stays denied", []lists{user(nil, nil, []string{"read secrets/", "read !secrets/a"})}, Read, "secrets/a", false, Deny, User, ""},
		{"letter case", []lists{user(nil, nil, []string{"read secrets/**"})}, Read, "Secrets/a", false, Deny, User, "deny read secrets/**"},
		{"anchored", []lists{user(nil, nil, []string{"write /docs/*.md"})}, Write, "sub/docs/a.md", false, Allow, Default, ""},
		{"folder pattern, file", []lists{user(nil, nil, []string{"write docs/"})}, Write, "docs", false, Allow, Default, ""},
		{"folder pattern, folder", []lists{user(nil, nil, []string{"write docs/"})}, Write, "docs", true, Deny, User, ""},
		{"the root", []lists{user(nil, nil, []string{"read **"})}, Read, ".", true, Deny, User, "deny read **"},
		{"the root and other rules", []lists{user(nil, nil, []string{"read docs"})}, Read, ".", true, Allow, Default, ""},
		{"write says nothing of read", []lists{user(nil, nil, []string{"write **"})}, Read, "a", false, Allow, Default, ""},
		{"protected path for ever", []lists{user([]string{"protected .vscode/launch.json"}, nil, nil)}, Protected, ".vscode/launch.json", false, Allow, User, ""},
		{"write allows nothing protected", []lists{user([]string{"write **"}, nil, nil)}, Protected, ".vscode/tasks.json", false, Ask, Default, ""},

		{"user and session", []lists{user([]string{"write"}, nil, nil), {Session, nil, nil, []string{"write"}}}, Write, "a", false, Deny, Session, "deny write"},
		{"user is named first", []lists{{Session, nil, nil, []string{"write"}}, user(nil, nil, []string{"write *"}), {Workspace, nil, nil, []string{"write"}}}, Write, "a", false, Deny, User, "deny write *"},
		{"workspace tightens", []lists{user([]string{"bash"}, nil, nil), {Workspace, nil, []string{"bash make"}, nil}}, Bash, "make x", false, Ask, Workspace, "ask bash make"},
		{"workspace denies", []lists{user([]string{"write"}, nil, nil), {Workspace, nil, nil, []string{"write gen/"}}}, Write, "gen/a", false, Deny, Workspace, ""},
		{"workspace cannot loosen", []lists{{Workspace, []string{"bash", "delete", "secrets", "tool:*", "net"}, nil, nil}}, Bash, "ls", false, Ask, Default, ""},
		{"workspace cannot lift", []lists{user(nil, nil, []string{"read .env*"}), {Workspace, []string{"read .env"}, nil, []string{"read !.env"}}}, Read, ".env", false, Deny, User, ""},

		{"shell entry", []lists{user([]string{"bash go test", "bash tail"}, nil, nil)}, Bash, "go test ./... 2>&1 | tail -5", false, Allow, User, "on the allow list"},
		{"shell entries of two layers", []lists{user([]string{"bash go test"}, nil, nil), {Session, []string{"bash tail"}, nil, nil}}, Bash, "go test | tail", false, Allow, User, ""},
		{"shell entry and more", []lists{user([]string{"bash go test"}, nil, nil)}, Bash, "go test; rm -rf x", false, Ask, Default, "rm -rf x is not on the allow list"},
		{"whole class", []lists{user([]string{"bash"}, nil, nil)}, Bash, "x=$(rm)", false, Allow, User, "allow bash"},
		{"ask inside the class", []lists{user([]string{"bash"}, []string{"bash git push"}, nil)}, Bash, "git add . && git push", false, Ask, User, "ask bash git push"},
		{"deny through a shell", []lists{user([]string{"bash"}, nil, []string{"bash git push"})}, Bash, "sh -c 'git push'", false, Deny, User, ""},
		{"deny with an entry", []lists{user([]string{"bash git"}, nil, []string{"bash git push"})}, Bash, "git push", false, Deny, User, ""},

		{"git", nil, Git, "", false, Ask, Default, "version control"},
		{"git by rule", []lists{user([]string{"git"}, nil, nil)}, Git, "", false, Allow, User, "allow git"},
		{"git denied", []lists{user([]string{"git"}, nil, []string{"git"})}, Git, "", false, Deny, User, "deny git"},
		{"whatever a command reaches", []lists{user([]string{"net"}, nil, nil)}, Net, "", false, Allow, User, "allow net"},
		{"one host is not the network", []lists{user([]string{"net *.example.org"}, nil, nil)}, Net, "", false, Ask, Default, ""},

		{"host", []lists{user([]string{"net example.org"}, nil, nil)}, Net, "Example.org:443", false, Allow, User, ""},
		{"host of another name", []lists{user([]string{"net example.org"}, nil, nil)}, Net, "example.org.evil.com:443", false, Ask, Default, ""},
		{"sub-domains", []lists{user([]string{"net *.example.org"}, nil, nil)}, Net, "a.b.example.org", false, Allow, User, ""},
		{"not the domain itself", []lists{user([]string{"net *.example.org"}, nil, nil)}, Net, "badexample.org", false, Ask, Default, ""},
		{"port", []lists{user([]string{"net example.org:443"}, nil, nil)}, Net, "example.org:80", false, Ask, Default, ""},
		{"trailing dot", []lists{user(nil, nil, []string{"net example.org"})}, Net, "example.org.", false, Deny, User, ""},
		{"tool by pattern", []lists{user([]string{"tool:github_*"}, nil, nil)}, Tool("github_search"), "", false, Allow, User, "allow tool:github_*"},
		{"another tool", []lists{user([]string{"tool:github_*"}, nil, nil)}, Tool("gitlab_search"), "", false, Ask, Default, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := engine(t, c.lists...).Decide(Request{Action: c.action, Subject: c.subject, Dir: c.dir})
			require.Equal(t, c.want, d.Verdict, "%+v", d)
			require.Equal(t, c.layer, d.Layer, "%+v", d)
			require.Contains(t, d.Rule, c.rule)
			require.Equal(t, d.Verdict == Ask, d.Grant != "")
		})
	}
}

func TestGrants(t *testing.T) {
	e := engine(t, lists{User, nil, []string{"bash git push"}, []string{"delete src/"}})
	ask := func(g *Grants, a Action, subject, hash string) Verdict {
		return g.Decide(e, Request{Action: a, Subject: subject, Hash: hash}).Verdict
	}
	var g Grants
	require.Equal(t, Ask, ask(&g, Delete, "a", "h1"))

	g.AddHash(Delete, "h1")
	require.Equal(t, Allow, ask(&g, Delete, "a", "h1"), "exactly this")
	require.Equal(t, Ask, ask(&g, Delete, "a", "h2"), "something else")
	require.Equal(t, Ask, ask(&g, Delete, "a", ""), "nothing shown")
	require.Equal(t, Ask, ask(&g, Bash, "a", "h1"), "another action")

	g.Add(e.Decide(Request{Action: Delete, Subject: "a"}).Grant)
	require.Equal(t, Allow, ask(&g, Delete, "b", ""), "the class")
	require.Equal(t, Deny, ask(&g, Delete, "src/a", ""), "no grant lifts a deny")
	require.Equal(t, Ask, ask(&g, Bash, "ls", ""), "another class")

	g.AddClass(Bash)
	require.Equal(t, Allow, ask(&g, Bash, "ls", ""))
	require.Equal(t, Ask, ask(&g, Bash, "git push", ""), "a rule that asks is not lifted by the class")
	g.Add(e.Decide(Request{Action: Bash, Subject: "git push"}).Grant)
	require.Equal(t, Allow, ask(&g, Bash, "git push -f", ""), "but by the answer to it")

	g.AddHash(Delete, "")
	g.Add("")
	var other Grants
	require.Equal(t, Ask, ask(&other, Delete, "a", ""), "grants are of one session")
}

func TestParseErrors(t *testing.T) {
	for line, want := range map[string]string{
		"":                "it is empty",
		"raed **":         "unknown action raed",
		"edit **":         "write is the word here",
		"Shell ls":        "bash is the word here",
		"bash ls; rm":     "2 commands",
		"bash go test $X": "variable",
		"write [":         "not a pattern",
		"write # a":       "not a pattern",
		"net http://x/y":  "write a host",
		"net a b":         "write a host",
		"tool:":           "write the name of the tool",
		"tool:[":          "not a valid pattern",
		"tool:x y":        "takes no pattern",
	} {
		rules, err := Parse(User, Allow, "config.toml:3", []string{"read **", line})
		require.ErrorContains(t, err, want, line)
		require.ErrorContains(t, err, "config.toml:3: rule", line)
		require.Len(t, rules, 1, line)
	}
}

func TestIgnored(t *testing.T) {
	e := engine(t, lists{Workspace, []string{"bash ls"}, []string{"write"}, nil})
	require.Len(t, e.Ignored(), 1)
	require.Equal(t, "allow bash ls", e.Ignored()[0].String())
	require.Equal(t, Ask, e.Decide(Request{Action: Bash, Subject: "ls"}).Verdict)
}

// A workspace rule never turns a verdict into a looser one.
func FuzzWorkspaceOnlyTightens(f *testing.F) {
	f.Add("read **", "write !a", "bash ls", uint8(0), "a/b.go", "ls -la")
	f.Add("delete x", "secrets .env", "tool:*", uint8(1), ".env", "make x")
	actions := []Action{Read, Write, Delete, Bash, Net, Protected, Secrets, Tool("x")}
	f.Fuzz(func(t *testing.T, a, b, c string, v uint8, path, line string) {
		rules, _ := Parse(User, Verdict(v%3), "", []string{a, "bash go test", "write docs/**"})
		more, _ := Parse(User, Deny, "", []string{"read .env"})
		rules = append(rules, more...)
		without, err := New(rules)
		if err != nil {
			t.Skip()
		}
		for _, verdict := range []Verdict{Allow, Ask, Deny} {
			ws, _ := Parse(Workspace, verdict, "", []string{b, c})
			rules = append(rules, ws...)
		}
		with, err := New(rules)
		if err != nil {
			t.Fatal(err)
		}
		for _, act := range actions {
			subject := path
			if act == Bash {
				subject = line
			}
			r := Request{Action: act, Subject: subject}
			if x, y := without.Decide(r), with.Decide(r); y.Verdict < x.Verdict {
				t.Fatalf("%s %q: %v became %v", act, subject, x, y)
			}
		}
	})
}
