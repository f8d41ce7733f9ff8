package workspace

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/klauspost/compress/s2"
)

// Undo is what the ledger stores to take one change back: for edits the reverse
// delta, for whole texts (writes, deletions, files written in place) the text
// before. Paths are absolute real paths.
type Undo struct {
	Kind                  ChangeKind // of the change that it takes back
	Path, Dest            string
	BeforeHash, AfterHash string
	// Edits turn the text after into the text before; unless Whole.
	Edits []Edit
	// Anchors, one for each of Edits, find their places in a text that has moved
	// on since; none in what older versions stored.
	Anchors []Anchor
	// Whole: Text is the complete text before.
	Whole bool
	Text  string
	// Mode and Link of a deleted file or symbolic link.
	Mode fs.FileMode
	Link string
	// Parents are the folders that the change created, outermost first.
	Parents []string
}

// Undo returns what is needed to take the change back. It is worked out once.
func (c *Change) Undo() Undo {
	if c.undo == nil {
		u := c.makeUndo()
		c.undo = &u
	}
	return *c.undo
}

func (c *Change) makeUndo() Undo {
	u := Undo{Kind: c.Kind, Path: c.Target.Abs, BeforeHash: c.BeforeHash, AfterHash: c.AfterHash, Parents: c.Parents}
	if c.Dest != nil {
		u.Dest = c.Dest.Abs
	}
	switch c.Kind {
	case ChangeModify:
		if c.Before.InPlace {
			u.Whole, u.Text = true, c.Before.Text
			break
		}
		u.Edits = invertEdits(c.Before.Text, c.Edits)
		u.Anchors = anchors(c.after, u.Edits)
	case ChangeDelete:
		u.Whole, u.Text, u.Mode, u.Link = true, c.Before.Text, c.Before.Mode, c.link
	}
	return u
}

// undoFormat is the first byte of an encoded Undo; undoBare is that of one
// without anchors. The second byte says how the rest is packed.
const (
	undoBare   = 1
	undoFormat = 2

	undoPlain   = 0
	undoDeflate = 1 // by older versions
	undoS2      = 2
)

// PackFrom is the size, in bytes, from which texts are packed for the ledger. Below
// it a command would wait longer for the packer than for the disk: S2, which takes
// a tenth of the time of the fastest deflate, needs 0.45 ms for 100 KiB of source,
// as long as the bare write of the file.
const PackFrom = 128 << 10

// Encode makes the bytes that DecodeUndo reads: varints and strings, packed with
// S2 from [PackFrom] on.
func (u Undo) Encode() []byte {
	var b []byte
	str := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	num := func(n uint64) { b = binary.AppendUvarint(b, n) }
	str(string(u.Kind))
	str(u.Path)
	str(u.Dest)
	str(u.BeforeHash)
	str(u.AfterHash)
	whole := uint64(0)
	if u.Whole {
		whole = 1
	}
	num(whole)
	str(u.Text)
	num(uint64(u.Mode))
	str(u.Link)
	num(uint64(len(u.Parents)))
	for _, p := range u.Parents {
		str(p)
	}
	num(uint64(len(u.Edits)))
	at := 0
	for _, e := range u.Edits {
		num(uint64(e.Start - at))
		num(uint64(e.End - e.Start))
		str(e.New)
		at = e.End
	}
	num(uint64(len(u.Anchors)))
	for _, a := range u.Anchors {
		for _, s := range []string{a.Lead, a.Tail, a.Head, a.Sum} {
			str(s)
		}
	}
	if len(b) >= PackFrom {
		z := make([]byte, 2+max(0, s2.MaxEncodedLen(len(b))))
		z[0], z[1] = undoFormat, undoS2
		if n := len(s2.Encode(z[2:], b)); n > 0 && n < len(b) {
			return z[:2+n]
		}
	}
	return append([]byte{undoFormat, undoPlain}, b...)
}

// maxUndo bounds what DecodeUndo unpacks.
const maxUndo = 512 << 20

// DecodeUndo reads what Encode made; other bytes are an error.
func DecodeUndo(data []byte) (Undo, error) {
	var u Undo
	if len(data) < 2 || data[0] != undoFormat && data[0] != undoBare || data[1] > undoS2 {
		return u, errors.New("undo: unknown format")
	}
	body, err := unpackUndo(data[1], data[2:])
	if err != nil {
		return u, fmt.Errorf("undo: %w", err)
	}
	r := undoReader{b: body}
	u.Kind = ChangeKind(r.str())
	u.Path, u.Dest, u.BeforeHash, u.AfterHash = r.str(), r.str(), r.str(), r.str()
	u.Whole = r.num() == 1
	u.Text = r.str()
	u.Mode = fs.FileMode(r.num())
	u.Link = r.str()
	for n := r.num(); n > 0 && r.err == nil; n-- {
		u.Parents = append(u.Parents, r.str())
	}
	at := 0
	for n := r.num(); n > 0 && r.err == nil; n-- {
		e := Edit{Start: at + int(r.num())}
		e.End = e.Start + int(r.num())
		e.New = r.str()
		if e.Start < at || e.End < e.Start {
			r.err = errors.New("edits out of order")
		}
		at = e.End
		u.Edits = append(u.Edits, e)
	}
	if data[0] == undoFormat {
		for n := r.num(); n > 0 && r.err == nil; n-- {
			u.Anchors = append(u.Anchors, Anchor{Lead: r.str(), Tail: r.str(), Head: r.str(), Sum: r.str()})
		}
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = errors.New("bytes left over")
	}
	if r.err != nil {
		return Undo{}, fmt.Errorf("undo: %w", r.err)
	}
	return u, nil
}

func unpackUndo(how byte, packed []byte) ([]byte, error) {
	switch how {
	case undoDeflate:
		return io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxUndo))
	case undoS2:
		if n, err := s2.DecodedLen(packed); err != nil || n > maxUndo {
			return nil, errors.Join(err, errors.New("it cannot be unpacked"))
		}
		return s2.Decode(nil, packed)
	}
	return packed, nil
}

type undoReader struct {
	b   []byte
	err error
}

func (r *undoReader) num() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.err = nil, errors.New("cut short")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *undoReader) str() string {
	n := r.num()
	if n > uint64(len(r.b)) {
		r.b, r.err = nil, errors.New("cut short")
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// Revert plans the inverse of a change against what is there now. When the text
// has moved on since, the places are found again by what the change had put
// there (see Anchor), with a note, or it is refused (CodeChanged): files that
// were created and changed since, or places that are changed, missing or not
// the only ones. The result is an ordinary change: it is committed, recorded
// and itself undoable.
func (w *Workspace) Revert(u Undo) (*Change, error) {
	c := &Change{}
	var err error
	switch u.Kind {
	case ChangeModify:
		err = w.revertModify(c, u)
	case ChangeCreate:
		err = w.revertCreate(c, u, u.Path)
	case ChangeCopy:
		err = w.revertCreate(c, u, u.Dest)
	case ChangeDelete:
		err = w.revertDelete(c, u)
	case ChangeMove:
		err = w.revertMove(c, u)
	case ChangeMkdir:
		err = w.revertMkdir(c, u)
	case ChangeTouch, ChangeNone:
		err = w.revertNothing(c, u)
	default:
		err = refuse(CodeInvalid, u.Path, "unknown kind of change %q", string(u.Kind))
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

const movedOn = "it is no longer as the change left it, so the change cannot be taken back by itself; nothing was changed"

func (w *Workspace) revertModify(c *Change, u Undo) error {
	t, err := w.Resolve(u.Path, AccessWrite)
	if err != nil {
		return err
	}
	c.Op = Op{Kind: OpEdit, Path: u.Path, AllowSecret: true}
	c.Target = t
	if c.Before, err = w.Snapshot(t); err != nil {
		return err
	}
	c.Open, c.BeforeHash = c.Before.Open, c.Before.Hash
	switch {
	case !c.Before.Exists:
		return refuse(CodeChanged, t.Display, "%s (it was removed)", movedOn)
	case c.Before.Hash == u.BeforeHash:
		c.Kind, c.AfterHash = ChangeNone, c.BeforeHash
		c.after = c.Before.Text
		return nil
	case c.Before.Hash != u.AfterHash:
		edits, ok := u.Locate(c.Before.Text)
		if !ok {
			return refuse(CodeChanged, t.Display, "%s", movedOn)
		}
		c.Edits = mergeEdits(edits)
		c.Notes = append(c.Notes, "the text had moved on; what this change had put there was found again and taken back, the rest stays")
		return w.finishText(c)
	}
	c.Edits = u.Edits
	if u.Whole {
		c.Edits = DiffText(c.Before.Text, u.Text)
	}
	if err := w.finishText(c); err != nil {
		return err
	}
	if c.AfterHash != u.BeforeHash {
		return refuse(CodeInvalid, t.Display, "the stored change does not lead back to the text before it")
	}
	return nil
}

// revertCreate removes a created file, and the folders made for it.
func (w *Workspace) revertCreate(c *Change, u Undo, path string) error {
	t, err := w.Resolve(path, AccessDelete)
	if err != nil {
		return err
	}
	c.Op = Op{Kind: OpDelete, Path: path, AllowSecret: true}
	c.Target, c.Kind = t, ChangeDelete
	if _, open := w.docs.find(t.Given, t.Abs); !t.Exists && !open {
		c.Kind = ChangeNone
		c.Before = Snapshot{Target: t}
		return nil
	}
	if t.IsDir {
		return refuse(CodeChanged, t.Display, "%s", movedOn)
	}
	if err := w.beforeRemoval(c); err != nil {
		return err
	}
	if c.BeforeHash != u.AfterHash {
		return refuse(CodeChanged, t.Display, "%s", movedOn)
	}
	c.rmParents = innermostFirst(u.Parents)
	return nil
}

// revertDelete brings a file or link back.
func (w *Workspace) revertDelete(c *Change, u Undo) error {
	t, err := w.Resolve(u.Path, AccessDelete)
	if err != nil {
		return err
	}
	c.Op = Op{Kind: OpWrite, Path: u.Path, Body: u.Text, AllowSecret: true}
	c.Target = t
	c.Before = Snapshot{Target: t}
	if u.BeforeHash == HashDir { // an emptied folder that was removed again
		c.Op.Kind, c.Kind, c.AfterHash = OpMkdir, ChangeMkdir, HashDir
		if t.Exists {
			return refuse(CodeChanged, t.Display, "something is there again; nothing was changed")
		}
		c.Parents = w.missingParents(t)
		return nil
	}
	if _, open := w.docs.find(t.Given, t.Abs); t.Exists || open {
		hash, _, err := ProbeFile(t.Abs)
		if err == nil && hash == u.BeforeHash {
			c.Kind, c.BeforeHash, c.AfterHash = ChangeNone, hash, hash
			return nil
		}
		return refuse(CodeChanged, t.Display, "a file of this name is there again; nothing was changed")
	}
	c.Kind, c.AfterHash = ChangeCreate, u.BeforeHash
	c.after, c.mode, c.link = u.Text, u.Mode.Perm(), u.Link
	if u.Link == "" {
		c.Edits = []Edit{{New: u.Text}}
		if u.Text == "" {
			c.Edits = nil
		}
		c.Added = countLines(u.Text)
		c.Temp = tempName(t.Abs)
		if HashText(u.Text) != u.BeforeHash {
			return refuse(CodeInvalid, t.Display, "the stored text is not the one that was removed")
		}
	}
	c.Parents = w.missingParents(t)
	return nil
}

// revertMove moves back.
func (w *Workspace) revertMove(c *Change, u Undo) error {
	c.Op = Op{Kind: OpMove, Path: u.Dest, Dest: u.Path, AllowSecret: true}
	if err := w.planMove(c); err != nil {
		if r, ok := AsRefusal(err); ok && (r.Code == CodeNotFound || r.Code == CodeExists) {
			r.Code = CodeChanged
			r.Message = movedOn + ": " + r.Message
		}
		return err
	}
	if c.BeforeHash != u.AfterHash && !c.Before.Dirty {
		return refuse(CodeChanged, c.Target.Display, "%s", movedOn)
	}
	c.rmParents = innermostFirst(u.Parents)
	return nil
}

// revertMkdir removes the folder, if it is empty still.
func (w *Workspace) revertMkdir(c *Change, u Undo) error {
	t, err := w.Resolve(u.Path, AccessDelete)
	if err != nil {
		return err
	}
	c.Op = Op{Kind: OpDelete, Path: u.Path}
	c.Target, c.Kind = t, ChangeDelete
	c.Before = Snapshot{Target: t, Exists: true, Hash: HashDir}
	switch {
	case !t.Exists:
		c.Kind, c.Before = ChangeNone, Snapshot{Target: t}
		return nil
	case !t.IsDir:
		return refuse(CodeChanged, t.Display, "%s", movedOn)
	}
	c.BeforeHash = HashDir
	names, err := readNames(t.Abs, 1)
	if err != nil {
		return &Refusal{Code: CodeIO, Path: t.Display, Message: "cannot look into the folder: " + plainError(err), Err: err}
	}
	if len(names) > 0 {
		return refuse(CodeChanged, t.Display, "the folder is not empty any more (it holds %s); nothing was changed", names[0])
	}
	c.rmParents = innermostFirst(u.Parents)
	return nil
}

func (w *Workspace) revertNothing(c *Change, u Undo) error {
	t, err := w.Resolve(u.Path, AccessRead)
	if err != nil {
		return err
	}
	c.Op, c.Target, c.Kind = Op{Kind: OpTouch, Path: u.Path}, t, ChangeNone
	c.BeforeHash, c.AfterHash = u.AfterHash, u.AfterHash
	c.Before = Snapshot{Target: t}
	return nil
}

func innermostFirst(dirs []string) []string {
	out := make([]string, 0, len(dirs))
	for i := len(dirs) - 1; i >= 0; i-- {
		out = append(out, filepath.Clean(dirs[i]))
	}
	return out
}
