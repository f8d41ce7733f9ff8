package experiment

import (
	"fmt"
	"go/parser"
	"go/token"
	"os/exec"
	"sort"
	"strings"
)

// edits: two edits in each of four files.
func edits(named bool) Task {
	t := Task{
		Name: "edits", Title: "eight edits in four files", Files: archive("edits"), Closing: "All eight places are changed.",
		Reads:  []string{"price.go", "report.go", "server.go", "store.go"},
		Prompt: "Change the shop in this folder, in its four Go sources: in the store the capacity 64 becomes 256 and Find returns ErrMissing instead of nil for an unknown name; in the price file the tax is 19 percent instead of 16 and Round rounds half up to a whole cent; in the server the address is :8443 instead of :8080 and the time-out 30 seconds instead of 5; in the report the separator is a semicolon instead of a comma and the title is Stock instead of Inventory. Change nothing else.",
	}
	if named {
		t.Name, t.Attached = "edits-named", true
		t.Title += ", all named in the task"
		t.Prompt = strings.NewReplacer("in its four Go sources: ", "", "in the store", "in store.go", "in the price file", "in price.go", "in the server", "in server.go", "in the report", "in report.go").Replace(t.Prompt)
	}
	t.Stages = []Stage{reads("I look at the four files.", t.Reads...), {Say: "Now the changes.", Actions: shopEdits()}}
	t.Validate = func(w Work) error { return shopProblems(w, shopEdits(), t.Files) }
	return t
}

func reads(say string, paths ...string) Stage {
	s := Stage{Say: say}
	for _, p := range paths {
		s.Actions = append(s.Actions, Action{Kind: Read, Path: p})
	}
	return s
}

func shopEdits() []Action {
	edit := func(path, old, new string) Action { return Action{Kind: Edit, Path: path, Old: old, New: new} }
	return []Action{
		edit("store.go", "const capacity = 64\n", "const capacity = 256\n"),
		edit("store.go", "\tif !ok {\n\t\treturn nil, nil\n\t}\n", "\tif !ok {\n\t\treturn nil, ErrMissing\n\t}\n"),
		edit("price.go", "const taxPercent = 16\n", "const taxPercent = 19\n"),
		edit("price.go", "\treturn Cents(value)\n", "\treturn Cents(math.Floor(value + 0.5))\n"),
		edit("server.go", "\taddress = \":8080\"\n", "\taddress = \":8443\"\n"),
		edit("server.go", "\ttimeout = 5 * time.Second\n", "\ttimeout = 30 * time.Second\n"),
		edit("report.go", "const separator = \",\"\n", "const separator = \";\"\n"),
		edit("report.go", "\tb.WriteString(\"Inventory\\n\")\n", "\tb.WriteString(\"Stock\\n\")\n"),
	}
}

// shopProblems checks line by line that the wanted lines changed, and no others.
func shopProblems(w Work, wanted []Action, before map[string]string) error {
	var p problems
	paths := make([]string, 0, len(before))
	for path := range before {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		want := strings.ReplaceAll(before[path], "\r\n", "\n")
		for _, a := range wanted {
			if a.Path == path {
				want = strings.Replace(want, a.Old, a.New, 1)
			}
		}
		got := w.read(path)
		p.add(got != "", "%s is gone", path)
		if got == "" || got == want {
			continue
		}
		if strings.HasSuffix(path, ".go") {
			_, err := parser.ParseFile(token.NewFileSet(), path, got, 0)
			p.add(err == nil, "%s does not compile: %v", path, err)
		}
		g, x := strings.Split(got, "\n"), strings.Split(want, "\n")
		for i := range max(len(g), len(x)) {
			a, b := "", ""
			if i < len(g) {
				a = g[i]
			}
			if i < len(x) {
				b = x[i]
			}
			if a != b {
				p.add(false, "%s, line %d is %q, wanted is %q", path, i+1, a, b)
				break
			}
		}
	}
	return p.err()
}

// repair: three edits of which the one in the middle does not match at first.
func repair(named bool) Task {
	files := archive("edits")
	t := Task{
		Name: "repair", Title: "a failing edit in the middle", Files: files, Closing: "All three are changed.", Reads: []string{"server.go"},
		Prompt: "In the server of this shop, change the address to :8443, the time-out to 30 seconds and the answer for an unknown article to the text `no such article`. Change nothing else.",
	}
	if named {
		t.Name, t.Attached = "repair-named", true
		t.Title += ", the file named in the task"
		t.Prompt = strings.Replace(t.Prompt, "the server of this shop", "server.go", 1)
	}
	e := shopEdits()
	right := e[5]
	wrong := right
	wrong.Old, wrong.Fix = "\ttimeOut = 5 * time.Second\n", &right
	last := Action{Kind: Edit, Path: "server.go", Old: "\t\thttp.Error(w, \"unknown\", http.StatusNotFound)\n", New: "\t\thttp.Error(w, \"no such article\", http.StatusNotFound)\n"}
	t.Stages = []Stage{reads("I look at the server.", "server.go"), {Say: "Now the changes.", Actions: []Action{e[4], wrong, last}}}
	t.Validate = func(w Work) error { return shopProblems(w, []Action{e[4], right, last}, files) }
	return t
}

// mixed: read, write, test, repair what was written.
func mixed() Task {
	files := archive("mixed")
	t := Task{
		Name: "mixed", Title: "read, write, test, repair", Files: files, Closing: "The test passes.", Reads: []string{"README.md"},
		Prompt: "Read the rules in the README of this folder and write roman.sh as they say. Then run `sh test.sh` and mend what fails until it passes.",
		Needs:  []string{"sh"},
	}
	good := archive("mixed-answer")["roman.sh"]
	const line = "  for p in 100:C 90:XC 50:L 40:XL 10:X 9:IX 5:V 4:IV 1:I; do\n"
	const slip = "  for p in 100:C 90:XC 50:L 10:X 9:IX 5:V 4:IV 1:I; do\n"
	test := Stage{Say: "Now the test.", Actions: []Action{{Kind: Bash, Cmd: "sh test.sh"}}}
	t.Stages = []Stage{
		reads("First the rules.", "README.md"),
		{Say: "Now the program.", Actions: []Action{{Kind: Write, Path: "roman.sh", Body: strings.Replace(good, line, slip, 1)}}}, test,
		{Say: "Forty is missing in the list.", Actions: []Action{{Kind: Edit, Path: "roman.sh", Old: slip, New: line}}}, test,
	}
	t.Validate = func(w Work) error {
		var p problems
		p.add(w.read("test.sh") == files["test.sh"], "test.sh was changed; the program is what is to be mended")
		for n, want := range map[int]string{4: "IV", 40: "XL", 49: "XLIX", 99: "XCIX", 148: "CXLVIII"} {
			cmd := exec.Command("sh", "roman.sh", fmt.Sprint(n))
			cmd.Dir = w.Dir
			out, err := cmd.Output()
			p.add(err == nil && strings.TrimSpace(string(out)) == want, "sh roman.sh %d says %q (%v), wanted is %s", n, strings.TrimSpace(string(out)), err, want)
		}
		return p.err()
	}
	return t
}
