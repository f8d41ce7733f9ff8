package workspace

import (
	"reflect"
	"strings"
	"testing"
)

// TestUndoIsPackedFromASizeOn: small texts are kept as they are, large ones
// packed; both come back whole.
func TestUndoIsPackedFromASizeOn(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   int
		packed bool
	}{{"small", 100 << 10, false}, {"large", 300 << 10, true}} {
		t.Run(c.name, func(t *testing.T) {
			u := Undo{Kind: ChangeModify, Path: "a.txt", Whole: true, Text: strings.Repeat("the quick brown fox\n", c.size/20)}
			data := u.Encode()
			if packed := len(data) < c.size/2; packed != c.packed {
				t.Errorf("%d bytes of text are %d bytes, packed %v", c.size, len(data), packed)
			}
			back, err := DecodeUndo(data)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, u) {
				t.Errorf("came back as %.200v", back)
			}
		})
	}
}
