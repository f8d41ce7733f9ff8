package parser_test

import (
	"fmt"

	"thinkflow/parser"
)

// printer is a sink that prints what it is told.
type printer struct{}

func (printer) Text(s string)              { fmt.Printf("text %q\n", s) }
func (printer) Reasoning(s string)         { fmt.Printf("reasoning %q\n", s) }
func (printer) Opened(o parser.Opening)    { fmt.Println("opened", o.Name, o.ID, o.Path) }
func (printer) Progress(p parser.Progress) { fmt.Printf("progress %d %q\n", p.ID, p.Delta) }
func (printer) Command(c *parser.Command)  { fmt.Printf("command %s %d: %q\n", c.Name, c.ID, c.Body) }
func (printer) Error(e *parser.Error)      { fmt.Println("error", e.Message) }
func (printer) Note(n parser.Note)         { fmt.Println("note", n.Message) }

var _ parser.Sink = printer{}

func Example() {
	p := parser.New(parser.Options{}, printer{})
	p.Write("Here it is:\n<tf-wri")
	p.Write("te id=\"1\" path=\"a.txt\">\nhel")
	p.Write("lo\n</tf-w")
	p.Write("rite>\nDone.\n<tf-touch path=\"b\"/>")
	p.Close("stop")
	// Output:
	// text "Here it is:\n"
	// opened tf-write 1 a.txt
	// progress 1 "hel"
	// progress 1 "lo\n"
	// progress 1 ""
	// command tf-write 1: "hello\n"
	// text "\nDone.\n"
	// error line 6: tf-touch b: attribute id is missing, not executed. Send it again with the attribute; every command needs an id, a number that was not used in this answer
}
