package term

import "unicode"

// hidden reports whether r must not reach a terminal as it is.
func hidden(r rune, name bool) bool {
	switch {
	case r == '\n' || r == '\t':
		return name
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r < 0xa0:
		return false
	case r == 0x200c, r == 0x200d: // joiners
		return name
	case r == 0xad, r == 0x2028, r == 0x2029:
		return true
	}
	return unicode.Is(unicode.Cf, r) // format characters: bidi, zero width, tags
}
