package agent

import (
	"fmt"
	"slices"
	"strings"
)

// keepWhole is the size up to which a result is not cut when several share one
// budget, in bytes: a short answer must not suffer from a long one beside it.
const keepWhole = 2 << 10

// share makes results fit into budget bytes together. What is short stays whole,
// the rest is cut in proportion to its size.
func share(budget int, outs []*toolOutput) {
	total := 0
	for _, o := range outs {
		total += len(o.Text)
	}
	if total <= budget {
		return
	}
	floor := min(keepWhole, budget/len(outs))
	long := slices.Clone(outs)
	for {
		left, sum := budget, 0
		for _, o := range outs {
			if slices.Contains(long, o) {
				sum += len(o.Text)
			} else {
				left -= min(len(o.Text), floor)
			}
		}
		n := len(long)
		long = slices.DeleteFunc(long, func(o *toolOutput) bool { return len(o.Text) <= floor || part(left, len(o.Text), sum) < floor })
		if len(long) == n {
			for _, o := range outs {
				most := floor
				if slices.Contains(long, o) {
					most = part(left, len(o.Text), sum)
				}
				if len(o.Text) > most {
					o.Text = shrink(o, most)
				}
			}
			return
		}
	}
}

func part(left, size, sum int) int { return int(int64(left) * int64(size) / int64(sum)) }

// cutText cuts a result at the end of a line and says so.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := strings.LastIndexByte(s[:most], '\n') + 1
	if cut == 0 {
		return strings.ToValidUTF8(s[:most], "") + fmt.Sprintf("… %d more bytes; ask for less at a time\n", len(s)-most)
	}
	return s[:cut] + fmt.Sprintf("… %d more bytes; ask for less at a time\n", len(s)-cut)
}

func shrink(o *toolOutput, most int) string {
	if o.Shrink != nil {
		return o.Shrink(most)
	}
	return cutText(o.Text, most)
}
