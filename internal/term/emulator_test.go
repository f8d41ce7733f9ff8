package term

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
)

// emulator is as much of a terminal as the renderer uses; an unknown sequence
// is an error, so that nothing else can slip through.
type emulator struct {
	cols, rows int
	grid       [][]string // one cell each; "" is the right half of a wide one
	row, col   int        // row counts from the top of the scrollback
	pending    bool       // the cursor stands behind the last column
	saved      [2]int
	hidden     bool
	errs       []string
}

func newEmulator(cols, rows int) *emulator {
	return &emulator{cols: cols, rows: rows, grid: [][]string{nil}}
}

func (e *emulator) top() int { return max(0, len(e.grid)-e.rows) }

func (e *emulator) down() {
	e.row++
	if e.row == len(e.grid) {
		e.grid = append(e.grid, nil)
	}
}

func (e *emulator) Write(p []byte) (int, error) {
	s := string(p)
	for s != "" {
		switch {
		case strings.HasPrefix(s, "\x1b["):
			i := strings.IndexFunc(s[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
			if i < 0 {
				e.errs = append(e.errs, "torn sequence")
				return len(p), nil
			}
			e.csi(s[2:2+i], s[2+i])
			s = s[3+i:]
			continue
		case s[0] == 0x1b && len(s) > 1:
			switch s[1] {
			case 'D':
				e.down()
			case 'M':
				if e.row > e.top() {
					e.row--
				}
			case '7':
				e.saved = [2]int{e.row - e.top(), e.col}
			case '8':
				e.row, e.col, e.pending = e.saved[0]+e.top(), e.saved[1], false
			default:
				e.errs = append(e.errs, fmt.Sprintf("ESC %q", s[1]))
			}
			s = s[2:]
			continue
		}
		var c string
		var w int
		c, s, w, _ = uniseg.FirstGraphemeClusterInString(s, -1)
		switch c {
		case "\n": // the terminal driver makes CR LF of it
			e.col, e.pending = 0, false
			e.down()
		case "\r\n":
			e.col, e.pending = 0, false
			e.down()
		case "\r":
			e.col, e.pending = 0, false
		default:
			if c[0] < 0x20 {
				e.errs = append(e.errs, fmt.Sprintf("control %q", c))
				continue
			}
			e.print(c, w)
		}
	}
	return len(p), nil
}

func (e *emulator) print(c string, w int) {
	if w == 0 { // a mark of its own joins the cell before it, or is lost
		if row := e.grid[e.row]; e.col > 0 && e.col <= len(row) {
			row[e.col-1] += c
		}
		return
	}
	if e.pending || e.col+w > e.cols {
		e.col, e.pending = 0, false
		e.down()
	}
	row := e.grid[e.row]
	for len(row) < e.col+w {
		row = append(row, " ")
	}
	row[e.col] = c
	if w == 2 {
		row[e.col+1] = ""
	}
	e.grid[e.row] = row
	e.col += w
	if e.col == e.cols {
		e.col, e.pending = e.cols-1, true
	}
}

func (e *emulator) csi(args string, final byte) {
	n, err := strconv.Atoi(args)
	if err != nil {
		n = 1
	}
	switch {
	case final == 'm':
	case final == 'A':
		e.row = max(e.top(), e.row-n)
	case final == 'J' && args == "":
		if e.col < len(e.grid[e.row]) {
			e.grid[e.row] = e.grid[e.row][:e.col]
		}
		for i := e.row + 1; i < len(e.grid); i++ {
			e.grid[i] = nil
		}
	case args == "?25" && final == 'l':
		e.hidden = true
	case args == "?25" && final == 'h':
		e.hidden = false
	default:
		e.errs = append(e.errs, fmt.Sprintf("CSI %s%c", args, final))
	}
}

// String is the screen with its scrollback, without blanks at line ends.
func (e *emulator) String() string {
	var b strings.Builder
	for _, row := range e.grid {
		b.WriteString(strings.TrimRight(strings.Join(row, ""), " "))
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
