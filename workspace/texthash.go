package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"
)

// hashStep is after how many bytes a mark is set, from which a text that begins
// alike can be hashed.
const hashStep = 16 << 10

// hashed is a text, its hash, and the state of hashing it after each hashStep
// bytes. Marks are never written to.
type hashed struct {
	text, hash string
	marks      []hash.Cloner
}

// hashFrom hashes a text of which the first same bytes are those of before.
func hashFrom(before hashed, same int, text string) hashed {
	n := min(same/hashStep, len(before.marks))
	out := hashed{text: text, marks: before.marks[:n:n]}
	var h hash.Hash = sha256.New()
	if n > 0 {
		if c, err := before.marks[n-1].Clone(); err == nil {
			h = c
		} else {
			n, out.marks = 0, nil
		}
	}
	var buf [8 << 10]byte // in pieces: the whole as bytes would be a copy
	for at := n * hashStep; at < len(text); {
		size := copy(buf[:], text[at:])
		_, _ = h.Write(buf[:size])
		at += size
		if at%hashStep == 0 {
			if c, ok := h.(hash.Cloner); ok {
				if mark, err := c.Clone(); err == nil {
					out.marks = append(out.marks, mark)
				}
			}
		}
	}
	out.hash = hex.EncodeToString(h.Sum(nil))
	return out
}

// textHashes remembers the hashes of the open documents' texts: between two edits
// a text is the same, and what an edit makes of it was hashed when it was planned.
type textHashes struct {
	mu    sync.Mutex // guards what follows
	byKey map[string]docHashes
}

// docHashes are those of one document: of its text as it was last seen, and of
// what the last plan makes of it.
type docHashes struct{ now, planned hashed }

func newTextHashes() *textHashes { return &textHashes{byKey: map[string]docHashes{}} }

// of is the hash of the document's text.
func (t *textHashes) of(key, text string) hashed {
	t.mu.Lock()
	d := t.byKey[key]
	t.mu.Unlock()
	switch {
	case d.now.hash != "" && d.now.text == text:
	case d.planned.hash != "" && d.planned.text == text:
		d.now, d.planned = d.planned, hashed{}
	default:
		d.now = hashFrom(hashed{}, 0, text)
	}
	d.now.text = text // the document's own, so that there are no two copies
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byKey[key] = d
	return d.now
}

// plan is the hash of what edits make of a document's text: after, which begins
// with the same bytes.
func (t *textHashes) plan(key string, before hashed, same int, after string) string {
	h := hashFrom(before, same, after)
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.byKey[key]
	d.planned = h
	t.byKey[key] = d
	return h.hash
}

func (t *textHashes) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, key)
}
