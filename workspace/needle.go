package workspace

import "strings"

// needle is a text to be found in a longer one. strings.Index looks for its first
// byte first, which in source text is a blank, a tab or a bracket more often than
// not; here it is the byte that is rarest in the text at hand.
type needle struct {
	text string
	rare int // offset of that byte
}

const (
	// needleSample is how many bytes of a text are counted, evenly spread.
	needleSample = 2048
	// needleTail is how many bytes must follow the rare one, where there are so
	// many: they are what is looked for.
	needleTail = 8
	// needleMisses is after how many places at which only the tail fits the whole
	// is looked for, so that no text makes the search quadratic.
	needleMisses = 16
)

func newNeedle(s, text string) needle {
	n := needle{text: text}
	if len(s) < 2*needleSample || len(text) < 2 {
		return n
	}
	var often [256]int32
	for i, step := 0, len(s)/needleSample; i < len(s); i += step {
		often[s[i]]++
	}
	for i := range min(64, max(1, len(text)-needleTail)) {
		if often[text[i]] < often[text[n.rare]] {
			n.rare = i
		}
	}
	return n
}

// index is the offset of the first occurrence in s, or -1.
func (n needle) index(s string) int {
	tail := n.text[n.rare:]
	at := 0
	for range needleMisses {
		if at+n.rare > len(s) {
			return -1
		}
		i := strings.Index(s[at+n.rare:], tail)
		if i < 0 {
			return -1
		}
		at += i
		if s[at:at+n.rare] == n.text[:n.rare] {
			return at
		}
		at++
	}
	i := strings.Index(s[at:], n.text)
	if i < 0 {
		return -1
	}
	return at + i
}
