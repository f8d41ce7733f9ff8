package experiment

import (
	"fmt"
	"regexp"
	"strings"
)

// novel: read an outline, write a README and five chapters of just under 6,000
// bytes. Named says that the task names the outline's file.
func novel(named bool) Task {
	files := archive("novel")
	t := Task{
		Name: "novel", Title: "outline → README and five chapters", Files: files, Reads: []string{"outline.md"},
		Prompt:  "Write the novel that the outline in this folder describes: a README with the title and a list of the chapters with links, and five chapters, chapters/01.md to chapters/05.md, of 5,500 to 6,000 characters each. A chapter starts with a heading of the form `# Chapter 1: its title`.",
		Closing: "The README and the five chapters are written.",
	}
	if named {
		t.Name, t.Attached = "novel-named", true
		t.Title += ", the outline named in the task"
		t.Prompt = strings.Replace(t.Prompt, "the outline in this folder", "outline.md", 1)
	}
	writes := Stage{Say: "Now the book."}
	readme := "# The Salt Road\n\nA novel in five chapters.\n\n"
	for i, c := range chapters {
		readme += fmt.Sprintf("%d. [%s](chapters/%02d.md)\n", i+1, c.title, i+1)
	}
	writes.Actions = append(writes.Actions, Action{Kind: Write, Path: "README.md", Body: readme})
	for i, c := range chapters {
		writes.Actions = append(writes.Actions, Action{Kind: Write, Path: fmt.Sprintf("chapters/%02d.md", i+1), Body: chapter(i+1, c, 5900)})
	}
	t.Stages = []Stage{{Say: "First the outline.", Actions: []Action{{Kind: Read, Path: "outline.md"}}}, writes}
	t.Validate = func(w Work) error {
		var p problems
		p.add(strings.Contains(w.read("README.md"), "The Salt Road"), "README.md does not have the title of the outline, The Salt Road")
		for i, c := range chapters {
			path := fmt.Sprintf("chapters/%02d.md", i+1)
			text := w.read(path)
			p.add(strings.Contains(w.read("README.md"), path), "README.md has no link to %s", path)
			p.add(len(text) >= 5500 && len(text) <= 6000, "%s has %d characters, 5,500 to 6,000 are wanted", path, len(text))
			p.add(strings.HasPrefix(text, fmt.Sprintf("# Chapter %d: %s\n", i+1, c.title)), "%s does not start with `# Chapter %d: %s`", path, i+1, c.title)
			p.add(strings.Contains(text, c.who), "%s does not mention %s", path, c.who)
		}
		return p.err()
	}
	return t
}

type chapterFacts struct{ title, who, thing string }

var chapters = []chapterFacts{
	{"The Weigh-House", "Ilse Marrow", "the false scale"},
	{"A Cart without Lamps", "Tobin Reck", "the wheel that sang"},
	{"What the Ferryman Kept", "Old Fenna", "a drawer of letters"},
	{"The White Pans", "Aurel Quist", "the dry lake"},
	{"Payment in Kind", "Ilse Marrow", "the true weight"},
}

var sentences = []string{
	"%s had learned to listen before speaking, and on that morning there was much to hear.",
	"The road lay white under the wind, and nobody in the valley could say who had paid for it.",
	"There was %s again, where it had no business to be, and the same silence around it.",
	"\"You may count it twice,\" said the clerk, \"and it will be short twice.\"",
	"Rain came over the ridge in the afternoon and took the colour out of everything but the salt.",
	"In the evening %s wrote down what had been said, the lies in one column and the rest in another.",
	"A dog barked at the gate, thought better of it, and went back under the cart.",
	"What is owed, people here say, is never lost, it only changes hands in the dark.",
	"By then %s was known in three villages, and in each of them for another reason.",
	"The lamp was turned low; oil was dear, and there was little in that room that wanted light.",
	"Nobody asked about %s, which was how one could tell that everybody knew.",
	"So the second day ended like the first, with a door that was closed a little too softly.",
}

// chapter is prose of about n bytes, the same every time.
func chapter(number int, c chapterFacts, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Chapter %d: %s\n", number, c.title)
	for i := number; b.Len() < n-150; i++ {
		if (i-number)%5 == 0 {
			b.WriteString("\n\n")
		} else {
			b.WriteByte(' ')
		}
		s := sentences[(i*i+3*i*number)%len(sentences)]
		if strings.Contains(s, "%s") {
			who := c.who
			if strings.Contains(s, "about %s") || strings.Contains(s, "was %s") {
				who = c.thing
			}
			s = fmt.Sprintf(s, who)
		}
		b.WriteString(s)
	}
	b.WriteByte('\n')
	return strings.Replace(b.String(), "\n\n\n", "\n\n", 1)
}

// long: forty small files that the task describes whole.
func long() Task {
	t := Task{
		Name: "long", Title: "forty files", Closing: "All forty cards are written.",
		Prompt: "Make forty cards for the stations of a railway, cards/station-01.md to cards/station-40.md. Each starts with `# Station N`, has the lines `- line: A` for odd and `- line: B` for even numbers and `- km: N times 7`, and a paragraph of at least 300 characters.",
		Files:  map[string]string{"README.md": "# Railway cards\n"},
	}
	s := Stage{Say: "Here are the cards."}
	for n := 1; n <= 40; n++ {
		line := "B"
		if n%2 == 1 {
			line = "A"
		}
		var para []string
		for i := range 5 {
			para = append(para, strings.ReplaceAll(sentences[(n+i*5)%len(sentences)], "%s", fmt.Sprintf("the keeper of station %d", n)))
		}
		s.Actions = append(s.Actions, Action{Kind: Write, Path: fmt.Sprintf("cards/station-%02d.md", n),
			Body: fmt.Sprintf("# Station %d\n\n- line: %s\n- km: %d\n\n%s\n", n, line, n*7, strings.Join(para, " "))})
	}
	t.Stages = []Stage{s}
	para := regexp.MustCompile(`(?m)^[^#\-\n].{299,}$`)
	t.Validate = func(w Work) error {
		var p problems
		for n := 1; n <= 40; n++ {
			path := fmt.Sprintf("cards/station-%02d.md", n)
			text := w.read(path)
			line := string("BA"[n%2])
			p.add(text != "", "%s is missing", path)
			p.add(text == "" || strings.HasPrefix(text, fmt.Sprintf("# Station %d\n", n)), "%s does not start with `# Station %d`", path, n)
			p.add(text == "" || strings.Contains(text, "\n- line: "+line+"\n") && strings.Contains(text, fmt.Sprintf("\n- km: %d\n", n*7)), "%s: line or km is wrong", path)
			p.add(text == "" || para.MatchString(text), "%s has no paragraph of 300 characters", path)
		}
		return p.err()
	}
	return t
}

// rework: many files are written, then a check complains twice. It shows what
// the history of what was written costs, and what its absence does.
func rework() Task {
	t := Task{
		Name: "rework", Title: "six texts, a check that complains twice", Files: archive("rework"), Closing: "The check passes.",
		Prompt: "Write six texts about a salt road, texts/1.md to texts/6.md, each with a heading and about 2,500 characters. Then run `sh check.sh` and mend what it says until it passes.",
	}
	s := Stage{Say: "The texts."}
	body := func(i int) string {
		return strings.Replace(chapter(i, chapters[i%5], 2650), "Chapter", "Text", 1)
	}
	for i := 1; i <= 6; i++ {
		s.Actions = append(s.Actions, Action{Kind: Write, Path: fmt.Sprintf("texts/%d.md", i), Body: body(i)})
	}
	check := Stage{Say: "Now the check.", Actions: []Action{{Kind: Bash, Cmd: "sh check.sh"}}}
	head := func(i int) string { return firstLines(body(i), 1) }
	end := func(i int) Action {
		return Action{Kind: Edit, Path: fmt.Sprintf("texts/%d.md", i), Old: head(i), New: head(i) + "\n*Status: read*\n"}
	}
	t.Stages = []Stage{s, check,
		{Say: "Two texts lack their status.", Actions: []Action{end(2), end(5)}}, check,
		{Say: "Text 3 too.", Actions: []Action{end(3)}}, check}
	t.Validate = func(w Work) error {
		var p problems
		for i := 1; i <= 6; i++ {
			text := w.read(fmt.Sprintf("texts/%d.md", i))
			p.add(len(text) > 2300 && len(text) < 2900, "texts/%d.md has %d characters, about 2,500 are wanted", i, len(text))
			p.add(i != 2 && i != 3 && i != 5 || strings.Contains(text, "*Status: read*"), "texts/%d.md has no line *Status: read*", i)
		}
		return p.err()
	}
	return t
}

// errands: texts are written, then six things follow that have nothing to do with
// them. It shows what it costs to carry along what was written.
func errands() Task {
	t := Task{
		Name: "errands", Title: "four texts, then six steps that do not need them", Files: archive("errands"), Needs: []string{"sh"},
		Prompt:  "Write four texts about a salt road, texts/1.md to texts/4.md, each with a heading and about 3,000 characters. Then run `sh step.sh begin`: it prints a word, with which it is to be run next, and so on, until it prints that it is over. Say the last word.",
		Closing: "The last word is anchor.",
	}
	s := Stage{Say: "The texts."}
	for i := 1; i <= 4; i++ {
		s.Actions = append(s.Actions, Action{Kind: Write, Path: fmt.Sprintf("texts/%d.md", i), Body: strings.Replace(chapter(i, chapters[i], 3100), "Chapter", "Text", 1)})
	}
	t.Stages = []Stage{s}
	for _, word := range []string{"begin", "lantern", "gull", "barrel", "ledger", "anchor"} {
		t.Stages = append(t.Stages, Stage{Say: "On with " + word + ".", Actions: []Action{{Kind: Bash, Cmd: "sh step.sh " + word}}})
	}
	t.Validate = func(w Work) error {
		var p problems
		for i := 1; i <= 4; i++ {
			n := len(w.read(fmt.Sprintf("texts/%d.md", i)))
			p.add(n > 2700 && n < 3300, "texts/%d.md has %d characters, about 3,000 are wanted", i, n)
		}
		p.add(strings.Contains(w.Output, "anchor"), "the answer does not name the last word")
		return p.err()
	}
	return t
}

func firstLines(s string, n int) string {
	return strings.Join(strings.SplitAfter(s, "\n")[:n], "")
}

// survey: twelve files to read, an answer in words. Nothing is written: tags can
// save nothing here.
func survey() Task {
	t := Task{
		Name: "survey", Title: "read twelve files, answer in words", Files: map[string]string{},
		Prompt: "Each file in the folder logs, day-01.txt to day-12.txt, has a line `total: N`. On which day was the total highest, and what was it? Answer in one sentence with the day and the number.",
	}
	s := Stage{Say: "I look at the days."}
	best, day := 0, 0
	for d := 1; d <= 12; d++ {
		var b strings.Builder
		total := 0
		for h := range 14 {
			n := (d*37+h*h*11)%90 + 10
			total += n
			fmt.Fprintf(&b, "%02d:00 gate %d counted %d wagons, %s weather, keeper %s\n", h+6, h%3+1, n, []string{"fair", "wet", "white"}[(h+d)%3], chapters[(h+d)%5].who)
		}
		fmt.Fprintf(&b, "total: %d\n", total)
		if total > best {
			best, day = total, d
		}
		path := fmt.Sprintf("logs/day-%02d.txt", d)
		t.Files[path] = b.String()
		t.Reads = append(t.Reads, path)
		s.Actions = append(s.Actions, Action{Kind: Read, Path: path})
	}
	t.Stages = []Stage{s}
	t.Closing = fmt.Sprintf("The total was highest on day %d: %d wagons.", day, best)
	number := regexp.MustCompile(fmt.Sprintf(`\b0?%d\b[\s\S]*\b%d\b|\b%d\b[\s\S]*\b0?%d\b`, day, best, best, day))
	t.Validate = func(w Work) error {
		var p problems
		p.add(number.MatchString(w.Output), "the answer does not name the day with the highest total and that total")
		return p.err()
	}
	return t
}
