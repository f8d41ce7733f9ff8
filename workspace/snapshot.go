package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"
)

// bom is the byte order mark of UTF-8.
const bom = "\uFEFF"

// binaryProbe is how many bytes are looked at for a NUL.
const binaryProbe = 8 << 10

// HashText is the hash used everywhere: sha256 of the bytes, in hex.
func HashText(s string) string {
	h := sha256.New()
	var buf [8 << 10]byte // in pieces: the whole as bytes would be a copy
	for len(s) > 0 {
		n := copy(buf[:], s)
		_, _ = h.Write(buf[:n])
		s = s[n:]
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hashLink is the hash of a symbolic link itself: of "link:" and its target.
func hashLink(to string) string { return HashText("link:" + to) }

// ProbeFile hashes the entry at abs (a real path) without following a link in
// its place: HashDir for a folder. A missing entry is no error.
func ProbeFile(abs string) (hash string, exists bool, err error) {
	fi, err := os.Lstat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("probe %s: %w", abs, err)
	case fi.IsDir():
		return HashDir, true, nil
	case fi.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(abs)
		if err != nil {
			return "", true, fmt.Errorf("probe %s: %w", abs, err)
		}
		return hashLink(to), true, nil
	}
	f, _, err := openRead(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	} else if err != nil {
		return "", true, fmt.Errorf("probe %s: %w", abs, err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", true, fmt.Errorf("probe %s: %w", abs, err)
	}
	return hex.EncodeToString(h.Sum(nil)), true, nil
}

// Snapshot reads the target's text: the open buffer where there is one, the disk
// otherwise. A missing file is a snapshot with Exists unset. Folders, devices,
// files that are binary, not UTF-8 or too large are *Refusal.
func (w *Workspace) Snapshot(t Target) (Snapshot, error) {
	if w.docs.isGone(t.Abs) {
		return Snapshot{Target: t}, nil
	}
	if d, ok := w.docs.find(t.Given, t.Abs); ok {
		s := Snapshot{Target: t, Text: d.Text, Open: true, Version: d.Version, URI: d.URI, Dirty: d.Dirty, Exists: true, Mode: statMode(t.Abs)}
		s.doc, s.hashed = d.key, w.docs.hashes.of(d.key, d.Text)
		s.Hash = s.hashed.hash
		return s, nil
	}
	s, ref := w.snapshotDisk(t, w.opts.MaxFile)
	if ref != nil {
		return Snapshot{}, ref
	}
	if s.Exists {
		if why := undecodable(s.Text); why != "" {
			code := CodeUndecodable
			if strings.HasPrefix(why, "binary") {
				code = CodeBinary
			}
			return Snapshot{}, refuse(code, t.Display, "%s, %d bytes; it can be neither read nor edited as text", why, len(s.Text))
		}
	}
	return s, nil
}

// snapshotDisk reads the bytes on disk, whatever they are.
func (w *Workspace) snapshotDisk(t Target, max int64) (Snapshot, *Refusal) {
	s := Snapshot{Target: t}
	f, fi, err := openRead(t.Abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, readRefusal(t, err)
	}
	defer f.Close()
	if fi.Size() > max {
		return s, refuse(CodeTooLarge, t.Display, "the file has %d bytes; at most %d are handled as text", fi.Size(), max)
	}
	data, err := readAll(f, fi.Size(), max)
	if err != nil {
		return s, readRefusal(t, err)
	}
	s.Text, s.Mode, s.Exists = string(data), fi.Mode(), true
	s.Hash = HashText(s.Text)
	s.InPlace = mustWriteInPlace(f, fi) || w.knownInPlace(t.Abs)
	return s, nil
}

func (w *Workspace) knownInPlace(abs string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.inPlace[abs]
}

var (
	errIsDir      = errors.New("it is a folder")
	errNotRegular = errors.New("it is not a regular file")
	errTooLarge   = errors.New("it grew while it was read")
)

func readRefusal(t Target, err error) *Refusal {
	switch {
	case errors.Is(err, errIsDir):
		return refuse(CodeIsDirectory, t.Display, "this is a folder, not a file; list it to see what is in it")
	case errors.Is(err, errNotRegular):
		return refuse(CodeNotRegular, t.Display, "this is a device, socket or pipe, not a regular file")
	case isLoop(err):
		return refuse(CodeChanged, t.Display, "a part of the path became a symbolic link meanwhile; nothing was read")
	}
	return &Refusal{Code: CodeIO, Path: t.Display, Message: "cannot read it: " + plainError(err), Err: err}
}

// readAll reads a file of about the given size in one piece.
func readAll(f *os.File, size, max int64) ([]byte, error) {
	buf := make([]byte, 0, size+1)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > max {
			return nil, errTooLarge
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// undecodable says why bytes are not a text that can be edited; "" = they are.
func undecodable(s string) string {
	switch {
	case strings.HasPrefix(s, "\xFF\xFE"), strings.HasPrefix(s, "\xFE\xFF"):
		return "not valid UTF-8 (it is UTF-16 by its byte order mark)"
	case hasNUL(s):
		return "binary file (NUL byte in the first 8 KiB)"
	case !utf8.ValidString(s):
		return "not valid UTF-8 (another encoding)"
	}
	return ""
}

func hasNUL(s string) bool {
	if len(s) > binaryProbe {
		s = s[:binaryProbe]
	}
	return strings.IndexByte(s, 0) >= 0
}

// isBinary is the quick test of the search.
func isBinary(b []byte) bool {
	if len(b) > binaryProbe {
		b = b[:binaryProbe]
	}
	return bytes.IndexByte(b, 0) >= 0
}
