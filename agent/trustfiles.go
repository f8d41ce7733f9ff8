package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"thinkflow/internal/redact"
	"thinkflow/internal/trust"
	"thinkflow/workspace"
)

// Bounds of what is told about trust.
const (
	maxTrustFiles = 200       // files
	maxTrustText  = 256 << 10 // bytes of a text that is shown
)

// TrustFile is a file of the workspace that counts only once a person has agreed
// to its content.
type TrustFile struct {
	Kind  trust.Kind  `json:"kind"` // rules, verify
	Path  string      `json:"path"` // as people see it
	Abs   string      `json:"abs"`
	State trust.State `json:"state"`          // unknown, changed, refused, trusted
	Hash  string      `json:"hash,omitempty"` // of the content as it is now; "" = the file is gone
	Bytes int         `json:"bytes,omitempty"`
	// Text is the content, when one file was asked for. A text over 256 KiB is
	// not told, and cannot be agreed to here.
	Text string `json:"text,omitempty"`
}

var errNoTrust = errors.New("this engine keeps no answers about trust")

// TrustFiles lists what is asked about, or would be: AGENTS.md at the roots and in
// folders, .thinkflow/verify, and what else under the roots was answered once.
func (e *Engine) TrustFiles(ctx context.Context) ([]TrustFile, error) {
	if e.trust == nil {
		return nil, errNoTrust
	}
	var out []TrustFile
	seen := map[string]bool{}
	add := func(f TrustFile, err error) error {
		key := string(f.Kind) + " " + f.Abs
		if err == nil && f.Abs != "" && !seen[key] && len(out) < maxTrustFiles {
			seen[key] = true
			f.Text = ""
			out = append(out, f)
		}
		return err
	}
	for _, root := range e.ws.Roots() {
		for kind, name := range map[trust.Kind]string{trust.Rules: rulesName, trust.Verify: filepath.FromSlash(verifyFile)} {
			if err := add(e.trustFile(kind, filepath.Join(root.Dir, name), false)); err != nil {
				return nil, err
			}
		}
	}
	nested, err := e.ws.Glob(ctx, workspace.GlobRequest{Pattern: "**/" + rulesName, Max: maxTrustFiles})
	if err != nil {
		return nil, err
	}
	for _, n := range nested.Entries {
		if err := add(e.trustFile(trust.Rules, n.Path, false)); err != nil {
			return nil, err
		}
	}
	answered, err := e.trust.List()
	if err != nil {
		return nil, err
	}
	for _, a := range answered {
		if !e.underRoots(a.Path) {
			continue
		}
		if err := add(e.trustFile(a.Kind, a.Path, true)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b TrustFile) int {
		return strings.Compare(a.Path+" "+string(a.Kind), b.Path+" "+string(b.Kind))
	})
	return out, nil
}

// TrustText is one file with its text.
func (e *Engine) TrustText(path string) (TrustFile, error) {
	if e.trust == nil {
		return TrustFile{}, errNoTrust
	}
	kind, err := trustKind(path)
	if err != nil {
		return TrustFile{}, err
	}
	f, err := e.trustFile(kind, path, false)
	switch {
	case err != nil:
		return f, err
	case f.Abs == "":
		return f, fmt.Errorf("%s: there is no such file with text in it in this workspace", path)
	case f.Bytes > maxTrustText:
		return f, fmt.Errorf("%s has %d bytes, which is more than can be looked at; shorten it", f.Path, f.Bytes)
	}
	return f, nil
}

// Trust remembers a yes, or a no, to the content with the hash, which must be what
// the file has now: what a person looked at is what they answer for.
func (e *Engine) Trust(path, hash string, yes bool) (TrustFile, error) {
	f, err := e.TrustText(path)
	if err != nil {
		return f, err
	}
	if f.Hash != hash {
		return f, fmt.Errorf("%s is not what was looked at any more: look at it again", f.Path)
	}
	if yes {
		err = e.trust.Grant(f.Kind, f.Abs, hash)
	} else {
		err = e.trust.Refuse(f.Kind, f.Abs, hash)
	}
	if err != nil {
		return f, err
	}
	return e.TrustText(path)
}

// Distrust forgets every answer about a file, which may be gone.
func (e *Engine) Distrust(path string) (forgotten int, err error) {
	if e.trust == nil {
		return 0, errNoTrust
	}
	if !filepath.IsAbs(path) {
		t, err := e.ws.Resolve(path, workspace.AccessRead)
		if err != nil {
			return 0, err
		}
		path = t.Abs
	}
	if !e.underRoots(path) {
		return 0, fmt.Errorf("%s is outside of this workspace", path)
	}
	return e.trust.Revoke("", path)
}

// trustFile looks at one file. One that is not there, or empty, is the zero value
// unless gone says that it is told all the same.
func (e *Engine) trustFile(kind trust.Kind, path string, gone bool) (TrustFile, error) {
	t, err := e.ws.Resolve(path, workspace.AccessRead)
	if err == nil && t.Exists && !t.IsDir {
		snap, err := e.ws.Snapshot(t)
		if err == nil && strings.TrimSpace(snap.Text) != "" {
			f := TrustFile{Kind: kind, Path: t.Display, Abs: t.Abs, Hash: trust.Hash(snap.Text), Bytes: len(snap.Text)}
			if len(snap.Text) <= maxTrustText {
				f.Text = redact.Visible(e.redact.Values(snap.Text)) // hidden characters are told
			}
			f.State, err = e.trust.Trusted(kind, t.Abs, f.Hash)
			return f, err
		}
	}
	if !gone {
		return TrustFile{}, nil
	}
	return TrustFile{Kind: kind, Path: e.display(path), Abs: path, State: trust.Unknown}, nil
}

// trustKind is what a file would be used as, by its name.
func trustKind(path string) (trust.Kind, error) {
	slash := filepath.ToSlash(path)
	switch {
	case filepath.Base(path) == rulesName:
		return trust.Rules, nil
	case slash == verifyFile || strings.HasSuffix(slash, "/"+verifyFile):
		return trust.Verify, nil
	}
	return "", fmt.Errorf("%s is nothing that is asked about: %s and %s are", path, rulesName, verifyFile)
}

func (e *Engine) underRoots(path string) bool {
	for _, root := range e.ws.Roots() {
		if rel, err := filepath.Rel(root.Dir, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}
