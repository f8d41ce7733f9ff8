package ledger

import "encoding/json"

// What is written down goes through Options.Redact here, before it is hashed.

func (l *Ledger) texts(fields ...*string) {
	for _, f := range fields {
		if *f != "" {
			*f = l.o.Redact(*f)
		}
	}
}

func (l *Ledger) list(lines []string) []string {
	if len(lines) == 0 {
		return lines
	}
	out := make([]string, len(lines))
	for i, s := range lines {
		out[i] = l.o.Redact(s)
	}
	return out
}

func (l *Ledger) raw(b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return b
	}
	return l.o.RedactJSON(b)
}
