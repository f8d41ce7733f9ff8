package lsp

import (
	"context"
	"errors"
	"fmt"

	"thinkflow/agent"
)

// Truster is what an engine has besides if content of the workspace counts only
// once it is trusted; *agent.Engine has it.
type Truster interface {
	TrustFiles(ctx context.Context) ([]agent.TrustFile, error)
	TrustText(path string) (agent.TrustFile, error)
	Trust(path, hash string, yes bool) (agent.TrustFile, error)
	Distrust(path string) (forgotten int, err error)
}

var _ Truster = (*agent.Engine)(nil)

// trustParams list what is asked about, show one file, or answer for it.
type trustParams struct {
	// Do is list (also ""), show, grant, refuse or revoke.
	Do   string `json:"do,omitempty"`
	URI  string `json:"uri,omitempty"`
	Path string `json:"path,omitempty"` // instead of uri
	// Hash is what show told: grant and refuse are about exactly this content.
	Hash string `json:"hash,omitempty"`
}

// trustFile is agent.TrustFile with the URI as the client spells it.
type trustFile struct {
	URI string `json:"uri"`
	agent.TrustFile
}

// trustResult has the files that the request was about; of show, grant and refuse
// it is one, with its text.
type trustResult struct {
	Files     []trustFile `json:"files"`
	Forgotten int         `json:"forgotten,omitempty"` // answers, by revoke
}

// trust serves thinkflow/trust.
func (s *Server) trust(ctx context.Context, p trustParams) (trustResult, error) {
	path := p.Path
	if p.URI != "" {
		sel, err := (&selectParams{URI: p.URI}).selection()
		if err != nil {
			return trustResult{}, err
		}
		path = sel.Path
	}
	switch p.Do {
	case "", "list":
	case "show", "grant", "refuse", "revoke":
		if path == "" {
			return trustResult{}, badParams("%s: say which file, with uri or path", p.Do)
		}
		if p.Hash == "" && (p.Do == "grant" || p.Do == "refuse") {
			return trustResult{}, badParams("%s: hash is missing; show tells the text and its hash", p.Do)
		}
	default:
		return trustResult{}, badParams("do %q is none of list, show, grant, refuse, revoke", p.Do)
	}
	release(ctx)
	b, err := s.engine(ctx)
	if err != nil {
		return trustResult{}, fmt.Errorf("the engine could not be set up: %w", err)
	}
	t, ok := b.Engine.(Truster)
	if !ok {
		return trustResult{}, errors.New("this engine keeps no answers about trust")
	}
	res := trustResult{Files: []trustFile{}}
	var file agent.TrustFile
	switch p.Do {
	case "show":
		file, err = t.TrustText(path)
	case "grant", "refuse":
		file, err = t.Trust(path, p.Hash, p.Do == "grant")
	case "revoke":
		res.Forgotten, err = t.Distrust(path)
	default:
		files, err := t.TrustFiles(ctx)
		for _, f := range files {
			res.Files = append(res.Files, trustFile{s.spelled(f.Abs), f})
		}
		return res, err
	}
	if err != nil {
		return trustResult{}, badParams("%v", err)
	}
	if file.Abs != "" {
		res.Files = append(res.Files, trustFile{s.spelled(file.Abs), file})
	}
	return res, nil
}
