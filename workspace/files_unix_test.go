//go:build unix

package workspace

import (
	"path/filepath"
	"syscall"
	"testing"

	"thinkflow/internal/need"
)

func TestNotRegular(t *testing.T) {
	dir := tree(t, nil)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		need.Right(t, "the right to make a named pipe ("+err.Error()+")")
	}
	w := newSpace(t, dir, Options{})
	for _, op := range []Op{{Kind: OpAppend, Path: "pipe", Body: "x"}, {Kind: OpCopy, Path: "pipe", Dest: "x"}, {Kind: OpDelete, Path: "pipe"}} {
		_, err := do(w, op)
		if r, ok := AsRefusal(err); !ok || r.Code != CodeNotRegular {
			t.Errorf("%s: %v", op.Kind, err)
		}
	}
	if _, err := w.Read(t.Context(), ReadRequest{Path: "pipe"}); err == nil {
		t.Error("read a pipe")
	}
}
