package chat

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
)

// maxHistory bounds how many inputs are kept.
const maxHistory = 1000

// history is what was entered, oldest first, kept in a file that only the user
// can read: one JSON string a line.
type history struct {
	file  string // "" = not kept
	items []string
	at    int    // the one that is shown; len(items) = the draft
	draft string // what was being written before looking back
}

// openHistory reads the file; one that is not there or not readable is an empty
// history.
func openHistory(file string) *history {
	h := &history{file: file}
	f, err := os.Open(file)
	if err == nil {
		defer f.Close() //nolint:errcheck // read only
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 1<<22)
		for sc.Scan() {
			var s string
			if json.Unmarshal(sc.Bytes(), &s) == nil && s != "" {
				h.items = append(h.items, s)
			}
		}
	}
	if n := len(h.items) - maxHistory; n > 0 {
		h.items = h.items[n:]
		if n > maxHistory/4 {
			h.rewrite()
		}
	}
	h.at = len(h.items)
	return h
}

// add appends an input, unless it is the last one again.
func (h *history) add(s string) error {
	h.at, h.draft = len(h.items), ""
	if n := len(h.items); n > 0 && h.items[n-1] == s {
		return nil
	}
	h.items = append(h.items, s)
	h.at = len(h.items)
	if h.file == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	data, _ := json.Marshal(s) // a string always can be
	_, err = f.Write(append(data, '\n'))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// rewrite shortens the file to what is kept. Failing to is no matter.
func (h *history) rewrite() {
	f, err := os.CreateTemp(filepath.Dir(h.file), ".chat-history-*") // mode 0600
	if err != nil {
		return
	}
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	for _, s := range h.items {
		_ = enc.Encode(s)
	}
	err = w.Flush()
	if cerr := f.Close(); err == nil && cerr == nil {
		err = os.Rename(f.Name(), h.file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

// older and newer move through the history; ok is false at its ends.
func (h *history) older(current string) (s string, ok bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.items) {
		h.draft = current
	}
	h.at--
	return h.items[h.at], true
}

func (h *history) newer() (s string, ok bool) {
	if h.at >= len(h.items) {
		return "", false
	}
	h.at++
	if h.at == len(h.items) {
		return h.draft, true
	}
	return h.items[h.at], true
}

// looking reports whether an older input is shown.
func (h *history) looking() bool { return h.at < len(h.items) }
