package lsp

import (
	"context"
	"path/filepath"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"thinkflow/workspace"
)

// folder is one workspace folder.
type folder struct {
	key  string // see docKey
	root workspace.Root
}

func newFolder(u uri.URI, name string) (folder, bool) {
	dir := docPath(u)
	if dir == "" {
		return folder{}, false // a folder of another machine or archive
	}
	return folder{docKey(u), workspace.Root{Name: name, Dir: filepath.Clean(dir)}}, true
}

// initialFolders are the folders of initialize: workspaceFolders, else rootUri,
// else rootPath (all that Helix sends outside of a repository), else the
// fallback.
func initialFolders(p *protocol.InitializeParams, fallback string) []folder {
	var out []folder
	list, _ := p.WorkspaceFolders.Get()
	for _, f := range list {
		if g, ok := newFolder(f.URI, f.Name); ok {
			out = append(out, g)
		}
	}
	if len(out) > 0 {
		return out
	}
	//lint:ignore SA1019 eglot 1.9 and older clients send nothing else
	if root := p.RootURI; root != nil && *root != "" {
		if g, ok := newFolder(*root, ""); ok {
			return []folder{g}
		}
	}
	dir := fallback
	//lint:ignore SA1019 Helix sends nothing else outside of a repository
	if path, ok := p.RootPath.Get(); ok && filepath.IsAbs(path) {
		dir = path
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return []folder{{dir, workspace.Root{Dir: dir}}}
}

func rootsOf(folders []folder) []workspace.Root {
	roots := make([]workspace.Root, len(folders))
	for i, f := range folders {
		roots[i] = f.root
	}
	return roots
}

// DidChangeWorkspaceFolders changes the roots; the last one stays, because
// without a root nothing can be done.
func (s *Server) DidChangeWorkspaceFolders(_ context.Context, p *protocol.DidChangeWorkspaceFoldersParams) error {
	s.mu.Lock()
	var next []folder
	removed := map[string]bool{}
	for _, f := range p.Event.Removed {
		removed[docKey(f.URI)] = true
	}
	have := map[string]bool{}
	for _, f := range s.folders {
		if !removed[f.key] {
			next, have[f.key] = append(next, f), true
		}
	}
	for _, f := range p.Event.Added {
		if g, ok := newFolder(f.URI, f.Name); ok && !have[g.key] {
			next, have[g.key] = append(next, g), true
		}
	}
	if len(next) == 0 {
		s.mu.Unlock()
		return nil
	}
	s.folders = next
	s.mu.Unlock()
	if b := s.standing(); b != nil && b.Documents != nil {
		return b.Documents.SetRoots(rootsOf(next))
	}
	return nil
}
