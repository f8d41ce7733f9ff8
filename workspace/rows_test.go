package workspace

import (
	"maps"
	"strings"
	"testing"
)

// row is one operation on one file "f.go" (or path), and what must come of it.
type row struct {
	name   string
	path   string // default f.go
	before string // "\x00" = no file
	op     Op
	after  string // when applied
	rung   string
	code   Code     // when refused
	said   []string // words in the refusal or the notes
	quiet  bool     // no notes at all
}

const absent = "\x00"

func edit(old, new string) Op { return Op{Kind: OpEdit, Pairs: []Pair{{old, new}}} }

func edits(oldNew ...string) Op {
	op := Op{Kind: OpEdit}
	for i := 0; i < len(oldNew); i += 2 {
		op.Pairs = append(op.Pairs, Pair{oldNew[i], oldNew[i+1]})
	}
	return op
}

func allOf(op Op) Op              { op.All = true; return op }
func nearLine(op Op, line int) Op { op.Line = line; return op }
func write(body string) Op        { return Op{Kind: OpWrite, Body: body} }
func appended(body string) Op     { return Op{Kind: OpAppend, Body: body} }

func lines(n int, put map[int]string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		if s, ok := put[i]; ok {
			b.WriteString(s + "\n")
		} else {
			b.WriteString("line\n")
		}
	}
	return b.String()
}

var rows = []row{
	// all
	{name: "all: three places", before: "a\nb\na\na\n", op: allOf(edit("a\n", "x\n")), after: "x\nb\nx\nx\n", rung: RungExact},
	{name: "all: within a line", before: "a+a+a", op: allOf(edit("a", "bb")), after: "bb+bb+bb", rung: RungExact},
	{name: "all: one place is fine", before: "a\nb\n", op: allOf(edit("a\n", "x\n")), after: "x\nb\n"},
	{name: "all: none", before: "b\n", op: allOf(edit("apple\n", "x\n")), code: CodeNoMatch},
	{name: "all: overlapping", before: "aaa\n", op: allOf(edit("aa", "b")), code: CodeAmbiguous, said: []string{"overlap"}},
	{name: "all: touching", before: "abab\n", op: allOf(edit("ab", "c")), after: "cc\n"},
	{name: "all: new holds old", before: "x y x\n", op: allOf(edit("x", "xx")), after: "xx y xx\n"},
	{name: "all: trailing blanks everywhere", before: "go()  \nstop()\ngo()\t\n", op: allOf(edit("go()\n", "run()\n")), after: "run()\nstop()\nrun()\n", rung: RungTrailingSpace},
	{name: "all: two levels are too many even so", before: "if a {\n\tx()\n\ty()\n}\n\t\tx()\n\t\ty()\n", op: allOf(edit("x()\ny()\n", "z()\n")), after: "if a {\n\tz()\n}\n\t\tx()\n\t\ty()\n", rung: RungIndentShift},
	{name: "all: CRLF", before: "a\r\nb\r\na\r\n", op: allOf(edit("a\n", "x\ny\n")), after: "x\r\ny\r\nb\r\nx\r\ny\r\n"},
	{name: "all: more than a hundred", before: strings.Repeat("a\n", 150), op: allOf(edit("a\n", "b\n")), after: strings.Repeat("b\n", 150)},
	{name: "all: a hundred thousand touching ones", before: strings.Repeat("a", 100000), op: allOf(edit("a", "bc")), after: strings.Repeat("bc", 100000)},
	{name: "all: fifty thousand in one line", before: strings.Repeat("a-", 50000), op: allOf(edit("a", "b\n")), after: strings.Repeat("b\n-", 50000)},
	{name: "all: fifty thousand lines", before: strings.Repeat("a\r\n-\r\n", 50000), op: allOf(edit("a\n", "b\n")), after: strings.Repeat("b\r\n-\r\n", 50000)},
	{name: "all and line: all wins", before: "a\nb\na\n", op: nearLine(allOf(edit("a\n", "x\n")), 1), after: "x\nb\nx\n"},

	// line
	{name: "line: settles", before: lines(60, map[int]string{5: "a", 40: "a"}), op: nearLine(edit("a\n", "x\n"), 45), after: lines(60, map[int]string{5: "a", 40: "x"}), rung: RungExact},
	{name: "line: ten lines away", before: lines(60, map[int]string{5: "a", 40: "a"}), op: nearLine(edit("a\n", "x\n"), 50), after: lines(60, map[int]string{5: "a", 40: "x"})},
	{name: "line: eleven lines away", before: lines(60, map[int]string{5: "a", 40: "a"}), op: nearLine(edit("a\n", "x\n"), 51), code: CodeAmbiguous, said: []string{"5, 40", "within 10 lines of line 51"}},
	{name: "line: two near", before: lines(60, map[int]string{5: "a", 12: "a"}), op: nearLine(edit("a\n", "x\n"), 8), code: CodeAmbiguous, said: []string{"2 of them"}},
	{name: "line: far from the only place does not matter", before: lines(60, map[int]string{5: "a"}), op: nearLine(edit("a\n", "x\n"), 59), after: lines(60, map[int]string{5: "x"})},
	{name: "line: on a looser rung", before: lines(60, map[int]string{5: "a  ", 40: "a\t"}), op: nearLine(edit("a\n", "x\n"), 41), after: lines(60, map[int]string{5: "a  ", 40: "x"}), rung: RungTrailingSpace},
	{name: "line: among hundreds", before: lines(400, map[int]string{300: "unique"}), op: nearLine(edit("line\nunique\n", "x\n"), 299), after: lines(298, nil) + "x\n" + lines(100, nil)},
	{name: "line: many, one near", before: strings.Repeat("a\n", 150) + lines(30, nil) + "a\n" + lines(30, nil), op: nearLine(edit("a\n", "x\n"), 181), after: strings.Repeat("a\n", 150) + lines(30, nil) + "x\n" + lines(30, nil)},
	{name: "many places", before: strings.Repeat("a\n", 150), op: edit("a\n", "x\n"), code: CodeAmbiguous, said: []string{"more than 100 places", "…"}},

	// exact, and what surrounds it
	{name: "in the middle of a line", before: "say hello\n", op: edit("hello", "hi"), after: "say hi\n", rung: RungExact, quiet: true},
	{name: "old with CRLF on an LF file", before: "a\nb\n", op: edit("a\r\nb\r\n", "c\r\nd\r\n"), after: "c\nd\n", rung: RungExact},
	{name: "joining lines on purpose", before: "a\nb\n", op: edit("a\nb\n", "ab\n"), after: "ab\n"},
	{name: "deleting all", before: "a\n", op: edit("a\n", ""), after: ""},
	{name: "NUL late in the file is text", before: strings.Repeat("x\n", 5000) + "\x00\n", op: edit("\x00\n", "y\n"), after: strings.Repeat("x\n", 5000) + "y\n"},
	{name: "touching pairs", before: "a\nb\nc\n", op: edits("a\n", "1\n", "b\n", "2\n"), after: "1\n2\nc\n"},
	{name: "pairs in any order", before: "a\nb\nc\n", op: edits("c\n", "3\n", "a\n", "1\n"), after: "1\nb\n3\n"},
	{name: "pairs that swap", before: "a\nb\n", op: edits("a\n", "b\n", "b\n", "a\n"), after: "b\na\n"},
	{name: "same pair twice", before: "a\nb\n", op: edits("a\n", "x\n", "a\n", "y\n"), code: CodeOverlap, said: []string{"pairs 1 and 2", "line 1"}},
	{name: "second pair empty", before: "a\n", op: edits("a\n", "x\n", "", "y\n"), code: CodeEmptyOld, said: []string{"pair 2"}},
	{name: "second pair ambiguous", before: "a\nb\nb\n", op: edits("a\n", "x\n", "b\n", "y\n"), code: CodeAmbiguous, said: []string{"pair 2", "2, 3"}},
	{name: "same after the added line break", before: "a\nb\n", op: edit("a\n", "a"), code: CodeNoChange, said: []string{"line 1"}},
	{name: "same and absent", before: "a\n", op: edit("q\n", "q\n"), code: CodeNoChange, said: []string{"not in the file"}},
	{name: "no pair", before: "a\n", op: Op{Kind: OpEdit}, code: CodeInvalid},
	{name: "no file", before: absent, op: edit("a", "b"), code: CodeNotFound, said: []string{"tf-write creates it"}},
	{name: "empty file", before: "", op: edit("a\n", "b\n"), code: CodeNoMatch, said: []string{"empty"}},
	{name: "old with mark on a file with mark", before: bom + "a\nb\n", op: edit(bom+"a\n", bom+"c\n"), after: bom + "c\nb\n"},
	{name: "mark in the middle can be removed", before: "a\n" + bom + "b\n", op: edit(bom+"b\n", "b\n"), after: "a\nb\n"},
	{name: "flag: further lines behind indentation", before: "\tx := 1\n", op: edit("x := 1\n", "x := 1\ny := 2\n"), after: "\tx := 1\ny := 2\n", said: []string{"indentation of line 1"}},
	{name: "no flag: new is indented", before: "\tx := 1\n", op: edit("x := 1\n", "x := 1\n\ty := 2\n"), after: "\tx := 1\n\ty := 2\n", quiet: true},
	{name: "flag: middle of a word", before: "max = 1\n", op: edit("x = 1\n", "x = 2\n"), after: "max = 2\n", said: []string{"middle of a word in line 1"}},
	{name: "flag: blank line left", before: "a\nb\n", op: edit("a", "c\n"), after: "c\n\nb\n", said: []string{"empty line after line 1"}},

	// line endings
	{name: "CRLF: added lines", before: "a\r\nb\r\n", op: edit("a\n", "a\nx\ny\n"), after: "a\r\nx\r\ny\r\nb\r\n"},
	{name: "mixed: kept lines keep theirs", before: "a\nb\r\nc\r\nd\n", op: edit("a\nb\nc\nd\n", "a\nB\nc\nD\n"), after: "a\nB\r\nc\r\nD\n"},
	{name: "mixed: inserted line takes the dominant", before: "a\nb\nc\r\nd\r\ne\r\n", op: edit("a\nb\n", "a\nx\nb\n"), after: "a\nx\r\nb\nc\r\nd\r\ne\r\n"},
	{name: "mixed: replaced lines one to one, then dominant", before: "a\nb\r\nc\r\n", op: edit("a\nb\n", "1\n2\n3\n"), after: "1\n2\r\n3\r\nc\r\n"},
	{name: "mixed: fewer lines", before: "a\nb\r\nc\n", op: edit("a\nb\n", "x\n"), after: "x\nc\n"},
	{name: "tie: the first one", before: "a\r\nb\n", op: edit("b\n", "b\nc\n"), after: "a\r\nb\nc\r\n"},
	{name: "lone CR is data", before: "a\rb\r\nc\r\n", op: edit("c\n", "d\n"), after: "a\rb\r\nd\r\n"},
	{name: "lone CR in old", before: "a\rb\nc\n", op: edit("a\rb\n", "a\n"), after: "a\nc\n"},
	{name: "CR CR LF", before: "a\r\r\nb\r\n", op: edit("a\r\n", "c\n"), code: CodeNoMatch},
	{name: "CRLF: trailing blanks", before: "a  \r\nb\r\n", op: edit("a\nb\n", "a\nc\n"), after: "a\r\nc\r\n", rung: RungTrailingSpace},
	{name: "CRLF: shift", before: "{\r\n\ta\r\n\tb\r\n}\r\n", op: edit("a\nb\n", "a\nx\nb\n"), after: "{\r\n\ta\r\n\tx\r\n\tb\r\n}\r\n", rung: RungIndentShift},
	{name: "CRLF: no final line break", before: "a\r\nb", op: edit("b\n", "c\nd\n"), after: "a\r\nc\r\nd", rung: RungFinalNewline},
	{name: "CRLF: middle of lines", before: "one two\r\nthree four\r\n", op: edit("two\nthree", "2\n3"), after: "one 2\r\n3 four\r\n"},
	{name: "one line without any: LF", before: "a", op: edit("a", "a\nb"), after: "a\nb"},
	{name: "write: dominant ending", before: "a\r\nb\r\nc\n", op: write("a\nx\nc\n"), after: "a\r\nx\r\nc\r\n"},
	{name: "write: LF file, CRLF body", before: "a\nb\n", op: write("a\r\nc\r\n"), after: "a\nc\n"},
	{name: "write: keeps the mark", before: bom + "a\n", op: write("b\n"), after: bom + "b\n"},
	{name: "write: one mark only", before: bom + "a\n", op: write(bom + "b\n"), after: bom + "b\n"},
	{name: "write: new file as it came", before: absent, op: write("a\r\nb\n"), after: "a\r\nb\n"},
	{name: "write: final line break as in the body", before: "a\nb\n", op: write("a\nc"), after: "a\nc"},
	{name: "append: ending of the file", before: "a\r\nb\r\n", op: appended("c\nd\n"), after: "a\r\nb\r\nc\r\nd\r\n"},
	{name: "append: break of the file's style", before: "a\r\nb", op: appended("c\n"), after: "a\r\nb\r\nc\r\n", said: []string{"line break was put"}},
	{name: "append: body without final line break", before: "a\n", op: appended("b"), after: "a\nb", quiet: true},
	{name: "append: to an empty file", before: "", op: appended("b\n"), after: "b\n", quiet: true},
	{name: "append: to no file", before: absent, op: appended("b\n"), after: "b\n", quiet: true},
	{name: "append: second mark left out", before: bom + "a\n", op: appended(bom + "b\n"), after: bom + "a\nb\n"},
	{name: "append: nothing", before: "a\n", op: appended(""), after: "a\n", said: []string{"nothing to change"}},

	// final line break
	{name: "final: deleting the last line", before: "a\nlast", op: edit("last\n", ""), after: "a\n", rung: RungFinalNewline},
	{name: "final: not in the middle", before: "last b\nc", op: edit("last\n", "x\n"), code: CodeNoMatch},
	{name: "final: new inline", before: "a\nlast", op: edit("last\n", "x"), after: "a\nx", rung: RungFinalNewline, quiet: true},
	{name: "final: with trailing blanks", before: "a\nlast  ", op: edit("last\n", "x\n"), after: "a\nx", rung: RungTrailingSpace},
	{name: "final: with shift", before: "{\n\tlast\n\tline", op: edit("last\nline\n", "x\ny\n"), after: "{\n\tx\n\ty", rung: RungIndentShift},
	{name: "final: old ends in an empty line", before: "a\nb\n", op: edit("b\n\n", "c\n\n"), code: CodeNoMatch},
	{name: "final: exact elsewhere wins", before: "last\nb\nlast", op: edit("last\n", "x\n"), after: "x\nb\nlast", rung: RungExact},

	// trailing blanks
	{name: "trailing: old has them, file not", before: "a\nb\n", op: edit("a  \nb\t\n", "c\n"), after: "c\n", rung: RungTrailingSpace},
	{name: "trailing: blank lines with blanks", before: "a\n   \nb\n", op: edit("a\n\nb\n", "a\n\nc\n"), after: "a\n\nc\n", rung: RungTrailingSpace},
	{name: "trailing: inline old, whole line", before: "x\n\tgo()  \n\tend()\ny\n", op: edit("\tgo()\n\tend()", "\tstop()\n\tend()"), after: "x\n\tstop()\n\tend()\ny\n", rung: RungTrailingSpace},
	{name: "trailing: two places", before: "a  \nb\na\t\n", op: edit("a\n", "x\n"), code: CodeAmbiguous, said: []string{"1, 3"}},
	{name: "trailing: not within lines", before: "x  a \n", op: edit("x a\n", "y\n"), code: CodeNoMatch},
	{name: "trailing: lines around untouched", before: "k  \na  \nz  \n", op: edit("a\n", "b\n"), after: "k  \nb\nz  \n", rung: RungTrailingSpace},

	// Unicode
	{name: "unicode: no-break space", before: "a\u00a0b\n", op: edit("a b\n", "c\n"), after: "c\n", rung: RungUnicode},
	{name: "unicode: quotes in old, ASCII in the file", before: "it's\n", op: edit("it’s\n", "is\n"), after: "is\n", rung: RungUnicode},
	{name: "unicode: ellipsis is not three dots", before: "wait…\n", op: edit("wait...\n", "go\n"), code: CodeNoMatch},
	{name: "unicode: whole lines only", before: "he said “a” twice\n", op: edit("\"a\"", "b"), code: CodeNoMatch},
	{name: "unicode: lines that stay keep their letters", before: "“x”\nb — c\n“z”\n", op: edit("\"x\"\nb - c\n\"z\"\n", "\"x\"\nb - d\n\"z\"\n"), after: "“x”\nb - d\n“z”\n", rung: RungUnicode},
	{name: "unicode: composed in the file", before: "\u010ca\n", op: edit("C\u030ca\n", "b\n"), after: "b\n", rung: RungUnicode},
	{name: "unicode: exact beats it", before: "it's\nit’s\n", op: edit("it's\n", "x\n"), after: "x\nit’s\n", rung: RungExact},
	{name: "unicode: letters are never folded", before: "Straße\n", op: edit("Strasse\n", "x\n"), code: CodeNoMatch},
	{name: "unicode: fullwidth is another text", before: "ａ\n", op: edit("a\n", "x\n"), code: CodeNoMatch},

	// indentation
	{name: "shift: one tab more in the file", before: "{\n\t\ta\n\t\t\tb\n}\n", op: edit("\ta\n\t\tb\n", "\tc\n"), after: "{\n\t\tc\n}\n", said: nil, rung: RungIndentShift},
	{name: "shift: two blanks", before: "a:\n  b: 1\n  c: 2\n", op: edit("b: 1\nc: 2\n", "b: 1\nd: 3\nc: 2\n"), after: "a:\n  b: 1\n  d: 3\n  c: 2\n", rung: RungIndentShift},
	{name: "shift: one level less in the file", before: "a()\nb()\n", op: edit("\ta()\n\tb()\n", "\ta()\n\tc()\n"), after: "a()\nc()\n", rung: RungIndentShift},
	{name: "shift: less, but new has it not", before: "a()\nb()\n", op: edit("\ta()\n\tb()\n", "\ta()\nc()\n"), code: CodeIndentation, said: []string{"line 1"}},
	{name: "shift: five blanks are too many", before: "x\n     a\n     b\n", op: edit("a\nb\n", "c\n"), code: CodeIndentation, said: []string{"five blanks more"}},
	{name: "shift: two tabs are too many", before: "x\n\t\ta\n\t\tb\n", op: edit("a\nb\n", "c\n"), code: CodeIndentation, said: []string{"two levels more"}},
	{name: "shift: not uniform", before: "\ta\n\t\tb\n", op: edit("a\nb\n", "c\n"), code: CodeIndentation},
	{name: "shift: blank lines do not count", before: "{\n\ta\n\n\tb\n}\n", op: edit("a\n\nb\n", "a\n\nc\n"), after: "{\n\ta\n\n\tc\n}\n", rung: RungIndentShift},
	{name: "shift: two places", before: "\ta\n\tb\n\n\ta\n\tb\n", op: edit("a\nb\n", "c\n"), code: CodeAmbiguous, said: []string{"1, 4"}},
	{name: "shift: blank and tab mixed is no prefix", before: " \ta\n \tb\n", op: edit("a\nb\n", "c\n"), code: CodeIndentation},
	{name: "style: blanks in the file, tabs in old", before: "f:\n    a\n        b\n", op: edit("\ta\n\t\tb\n", "\tc\n"), code: CodeIndentation, said: []string{"blank indentation", "tab"}},

	// refusals that help
	{name: "numbers: colon", before: "a := 1\n", op: edit("1: a := 1\n", "1: a := 2\n"), code: CodeLineNumbers, said: []string{"line 1"}},
	{name: "numbers: arrow, several lines", before: "a\nb\n", op: edit("    1→a\n    2→b\n", "x\n"), code: CodeLineNumbers},
	{name: "numbers: they are in the file", before: "1: a\n2: b\n", op: edit("1: a\n", "1: c\n"), after: "1: c\n2: b\n", rung: RungExact},
	{name: "new is there already", before: "func a() {}\nreturn value 2\n", op: edit("return value 1\n", "return value 2\n"), code: CodeNoMatch, said: []string{"already", "line 2"}},
	{name: "nothing similar", before: "alpha\nbeta\n", op: edit("0123456789\n", "x\n"), code: CodeNoMatch, said: []string{"nothing in the file", "2 lines"}},
	{name: "fence around old and new", before: "a\nb\n", op: edit("```go\na\n```\n", "```go\nc\n```\n"), after: "c\nb\n", said: []string{"code fence"}},
	{name: "fence around new only is text", before: "a\nb\n", op: edit("a\n", "```go\nc\n```\n"), after: "```go\nc\n```\nb\n", quiet: true},

	{name: "invisible character in the file", before: "a\u200bb = 1\n", op: edit("ab = 1\n", "ab = 2\n"), code: CodeNoMatch, said: []string{"line 1", "U+200B"}},
	{name: "invisible: line ending doubled", before: "x\na\r\r\nb\r\n", op: edit("a\n", "c\n"), code: CodeNoMatch, said: []string{"line 2", "U+000D"}},
	{name: "XML entities in old", before: "if a < b && c {\n", op: edit("if a &lt; b &amp;&amp; c {\n", "x\n"), code: CodeNoMatch, said: []string{"line 1", "entities"}},
	{name: "backslashes before quotes", before: "say(\"x\")\n", op: edit(`say(\"x\")`+"\n", "y\n"), code: CodeNoMatch, said: []string{"line 1", "backslashes"}},
	{name: "letter case", before: "x\nFunc Main()\n", op: edit("func main()\n", "y\n"), code: CodeNoMatch, said: []string{"line 2", "letter case"}},
	{name: "three dots for an ellipsis", before: "wait…\n", op: edit("wait...\n", "go\n"), code: CodeNoMatch, said: []string{"line 1", "ellipsis"}},
	{name: "blanks inside the line", before: "x\nlim  =  9\n", op: edit("lim = 9\n", "lim = 8\n"), code: CodeNoMatch, said: []string{"line 2", "other blanks"}},
	{name: "other line breaks", before: "x\nf(a,\n  b)\n", op: edit("f(a, b)\n", "g()\n"), code: CodeNoMatch, said: []string{"line 2", "line breaks"}},

	// fences and placeholders in whole bodies
	{name: "fence: tilde, longer", before: absent, op: write("~~~~\na\n~~~\nb\n~~~~\n"), after: "a\n~~~\nb\n", said: []string{"code fence"}},
	{name: "fence: blank lines around", before: absent, op: write("\n```\na\n```\n\n"), after: "a\n", said: []string{"code fence"}},
	{name: "fence: text behind", before: absent, op: write("```\na\n```\nb\n"), after: "```\na\n```\nb\n", quiet: true},
	{name: "fence: closed in between", before: absent, op: write("```\na\n```\nb\n```\nc\n```\n"), after: "```\na\n```\nb\n```\nc\n```\n", quiet: true},
	{name: "fence: not closed", before: absent, op: write("```\na\n"), after: "```\na\n", quiet: true},
	{name: "fence: markdown stays", path: "a.markdown", before: absent, op: write("```\na\n```\n"), after: "```\na\n```\n", quiet: true},
	{name: "fence: append", before: "x\n", op: appended("```go\ny\n```\n"), after: "x\ny\n", said: []string{"code fence"}},
	{name: "fence: CRLF body", before: absent, op: write("```go\r\na\r\n```\r\n"), after: "a\r\n", said: []string{"code fence"}},
	{name: "placeholder: hash comment in an edit", before: "a\nb\n", op: edit("a\nb\n", "c\n# ... rest of the code ...\n"), code: CodePlaceholder, said: []string{"line 2 of new"}},
	{name: "placeholder: parenthesis", before: "a\nb\n", op: write("c\n(... remaining functions ...)\n"), code: CodePlaceholder, said: []string{"line 2"}},
	{name: "placeholder: block comment, ellipsis character", before: "a\nb\n", op: write("c\n/* … existing code … */\n"), code: CodePlaceholder},
	{name: "placeholder: HTML", path: "a.html", before: "a\nb\n", op: write("<!-- ... unchanged ... -->\n"), code: CodePlaceholder},
	{name: "placeholder: same as before", before: "a\nb\n", op: write("-- same as before ...\n"), code: CodePlaceholder},
	{name: "placeholder: spread is none", path: "a.ts", before: "a\nb\n", op: write("f({\n...rest\n})\n(...rest)\n[...existing, x]\n"), after: "f({\n...rest\n})\n(...rest)\n[...existing, x]\n"},
	{name: "placeholder: bare ellipsis is none", path: "a.py", before: "a\nb\n", op: write("def f():\n    ...\n# ...\n"), after: "def f():\n    ...\n# ...\n"},
	{name: "placeholder: words without ellipsis", before: "a\nb\n", op: write("// rest of the code is unchanged\nb\n"), after: "// rest of the code is unchanged\nb\n"},
	{name: "placeholder: code before the comment", before: "a\nb\n", op: write("x() // ... existing\nb\n"), after: "x() // ... existing\nb\n"},
	{name: "placeholder: was there", before: "// ... existing code\nb\n", op: write("// ... existing code\nc\n"), after: "// ... existing code\nc\n"},
	{name: "placeholder: appended", before: "a\n", op: appended("// ... rest unchanged\n"), code: CodePlaceholder},

	// writes
	{name: "write: empty body", before: "a\n", op: write(""), code: CodeEmptyBody, said: []string{"empty=\"true\""}},
	{name: "write: empty on purpose", before: "a\n", op: Op{Kind: OpWrite, Empty: true}, after: ""},
	{name: "write: empty new file", before: absent, op: write(""), after: ""},
	{name: "write: empty over empty", before: "", op: write(""), after: "", said: []string{"nothing to change"}},
	{name: "write: same text", before: "a\n", op: write("a\n"), after: "a\n", said: []string{"nothing to change"}},
	{name: "write: known text", before: "a\n", op: Op{Kind: OpWrite, Body: "b\n", KnownEver: true, Known: HashText("a\n")}, after: "b\n"},
	{name: "write: known as absent", before: "a\n", op: Op{Kind: OpWrite, Body: "b\n", KnownEver: true}, code: CodeChanged, said: []string{"did not exist then"}},
	{name: "write: known, gone since", before: absent, op: Op{Kind: OpWrite, Body: "b\n", KnownEver: true, Known: HashText("a\n")}, after: "b\n"},
	{name: "write: half is not flagged", before: "a\nb\nc\nd\n", op: write("a\nb\n"), after: "a\nb\n", quiet: true},
	{name: "write: less than half is", before: "a\nb\nc\nd\ne\n", op: write("a\nb\n"), after: "a\nb\n", said: []string{"5 -> 2 lines"}},
	{name: "write: folder spelling", path: "f.go/", before: absent, op: write("a"), code: CodeIsDirectory},
}

func TestRows(t *testing.T) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if r.path == "" {
				r.path = "f.go"
			}
			files := map[string]string{"other.txt": "o"}
			if r.before != absent {
				files[r.path] = r.before
			}
			dir := tree(t, files)
			w := newSpace(t, dir, Options{})
			r.op.Path = r.path
			c, err := do(w, r.op)
			said := ""
			if ref, ok := AsRefusal(err); ok {
				said = ref.Message
				if ref.Code != r.code {
					t.Fatalf("%s: %v, want %q", ref.Code, err, r.code)
				}
			} else if err != nil || r.code != "" {
				t.Fatalf("%+v, %v; want %q", c, err, r.code)
			}
			want := maps.Clone(files)
			if c != nil {
				said = strings.Join(c.Notes, "\n")
				want[r.path] = r.after
				checkOutside(t, c)
				if c.Kind != ChangeNone {
					checkUndo(t, w, c, r)
				}
				if r.rung != "" && c.Rung != r.rung {
					t.Errorf("rung %q, want %q", c.Rung, r.rung)
				}
			}
			sameFiles(t, dir, want)
			if r.quiet && said != "" {
				t.Errorf("said %q", said)
			}
			for _, word := range r.said {
				if !strings.Contains(said, word) {
					t.Errorf("%q is missing in %q", word, said)
				}
			}
		})
	}
}

// checkUndo takes the change back and brings it again, through the encoding.
func checkUndo(t *testing.T, w *Workspace, c *Change, r row) {
	t.Helper()
	u, err := DecodeUndo(c.Undo().Encode())
	if err != nil {
		t.Fatal(err)
	}
	back, err := w.Revert(u)
	if err != nil {
		t.Fatal(err)
	}
	if err := apply(w, back); err != nil {
		t.Fatal(err)
	}
	hash, exists, _ := ProbeFile(c.Target.Abs)
	if exists != (r.before != absent) || exists && hash != HashText(r.before) {
		t.Errorf("after the undo: exists %v, hash %s", exists, hash)
	}
	again, err := w.Revert(back.Undo())
	if err != nil {
		t.Fatal(err)
	}
	if err := apply(w, again); err != nil {
		t.Fatal(err)
	}
}
