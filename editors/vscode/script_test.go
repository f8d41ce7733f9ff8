package vscode_test

import (
	"fmt"
	"strings"
)

// script is what the model of the window says; each part of the test has its turns.
const script = `
model scripted

turn edit
when "shout in a.txt"
expect contains "only in the buffer"
text <<END
First the number.
<tf-edit id="1" path="a.txt"><old>only in the buffer</old><new>ONLY IN THE BUFFER</new></tf-edit>
END
await edited
text <<END
<tf-edit id="2" path="a.txt"><old>three</old><new>three
and four</new></tf-edit>
<tf-write id="3" path="new/b.txt">
fresh
</tf-write>
<tf-edit id="4" path="c.txt"><old>closed</old><new>CLOSED</new></tf-edit>
All done.
END

turn typing
when "while I type"
chunk 4
rate 400
text <<END
<tf-edit id="1" path="typing.txt"><old>alpha</old><new>ALPHA</new></tf-edit>
<tf-edit id="2" path="typing.txt"><old>beta</old><new>BETA
beta two</new></tf-edit>
<tf-edit id="3" path="typing.txt"><old>gamma</old><new>GAMMA</new></tf-edit>
<tf-append id="4" path="typing.txt">
appended
</tf-append>
<tf-edit id="5" path="typing.txt"><old>delta</old><new>DELTA</new></tf-edit>
END
text Finished.

turn cancel
when "that I cancel"
text <<END
<tf-edit id="1" path="cancel.txt"><old>one</old><new>ONE</new></tf-edit>
<tf-edit id="2" path="cancel.txt"><old>two</old><new>TW
END
hang

turn crash
when "before the crash"
text <<END
<tf-edit id="1" path="crash.txt"><old>one</old><new>ONE</new></tf-edit>
END
hang

turn after
when "after the crash"
text <<END
<tf-edit id="1" path="crash.txt"><old>two</old><new>TWO</new></tf-edit>
END

turn palette
when "from the palette"
reasoning <<END
A person looks at this.
END
text <<END
I change **one** thing in ` + "`look.txt`" + `:

<tf-edit id="1" path="look.txt"><old>plain</old><new>PLAIN
and more</new></tf-edit>

And that is all.
END
await looked

turn fault
when "brings in an error"
text <<END
<tf-edit id="1" path="faulty.txt"><old>good</old><new>badnew</new></tf-edit>
That is it.
END

turn mend
when "[THINKFLOW VERIFY]"
expect last-contains "badnew is no word"
expect not-contains "badold is no word"
text <<END
I mend it.
<tf-edit id="1" path="faulty.txt"><old>badnew</old><new>better</new></tf-edit>
END

turn harmless
when "brings in nothing new"
text <<END
<tf-edit id="1" path="faulty.txt"><old>better</old><new>best</new></tf-edit>
END

turn asks
when "asks and fails"
text <<END
I tidy up. First the *heading*:

<tf-edit id="1" path="ask.md"><old># Old</old><new># New</new></tf-edit>

Then the list, of which I am not sure:

<tf-edit id="2" path="ask.md"><old>- nowhere to be found</old><new>- found</new></tf-edit>

And more.
END

turn again
when "of which I am not sure"
text <<END
That line is not there; I take the one that is, and look at the result:

<tf-edit id="3" path="ask.md"><old>- one</old><new>- first
- second</new></tf-edit>
<tf-bash id="4">echo seen</tf-bash>
END

turn seen
when "look at the result"
expect last-contains "seen"
text <<END
It is as it should be; the draft can go.

<tf-delete id="5" path="draft.md" />
END

turn kept
when "the draft can go"
text "I keep the draft."

turn try once
when "try it once"
expect model scripted
text <<END
<tf-edit id="1" path="ask.md"><old># New</old><new># Newer</new></tf-edit>
END

turn not once
when "mode ask"
text "I may not."

turn try twice
when "try it twice"
expect model scripted
text <<END
<tf-edit id="1" path="ask.md"><old># New</old><new># Newer</new></tf-edit>
END

turn not twice
when "mode ask"
text "I may not."

turn try thrice
when "try it thrice"
expect model scripted
text <<END
<tf-edit id="1" path="ask.md"><old># New</old><new># Newer</new></tf-edit>
END

turn first
when "first of two"
text one,
await first
text " and done."

turn second
when "second of two"
expect contains "first of two"
text "Second answer."

turn told
when "told something"
text So far.
await told

turn hears
when "and mind the gap"
expect last-contains "and mind the gap"
text "I mind it."

turn elsewhere
when "called from elsewhere"
text <<END
<tf-edit id="1" path="look.txt"><old>PLAIN</old><new>plain again</new></tf-edit>
I was called.
END
await elsewhere

turn behind
when "behind the other"
text "Now it is my turn."

turn many
when "forty edits"
text <<END
%s
END
`

func fortyEdits() (text, edits string) {
	var t, e strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&t, "line %d of a document that is open\n", i)
	}
	for i := range 40 {
		fmt.Fprintf(&e, "<tf-edit id=\"%d\" path=\"many.txt\"><old>line %d of</old><new>LINE %d of</new></tf-edit>\n", i+1, i*50, i*50)
	}
	return t.String(), e.String()
}
