package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"go.lsp.dev/jsonrpc2"

	"thinkflow/agent"
)

// askDiagnostics is our request to a client that can tell diagnostics.
const askDiagnostics = "thinkflow/diagnostics"

// diagnosticsParams name the files; none = all that the client knows of.
type diagnosticsParams struct {
	URIs []string `json:"uris,omitempty"`
}

// diagnosticsResult has the diagnostics of LSP, by file.
type diagnosticsResult struct {
	Files []struct {
		URI         string           `json:"uri"`
		Diagnostics []wireDiagnostic `json:"diagnostics"`
	} `json:"files"`
}

// wireDiagnostic is what we take of an LSP Diagnostic: plugins pass on what
// language servers sent, so a code may be a number or text.
type wireDiagnostic struct {
	Range struct {
		Start struct {
			Line      int `json:"line"`
			Character int `json:"character"`
		} `json:"start"`
	} `json:"range"`
	Severity int      `json:"severity"`
	Code     anyText  `json:"code"`
	Source   string   `json:"source"`
	Message  flatText `json:"message"`
}

var _ agent.Diagnoser = (*Server)(nil)

// CanDiagnose tells whether the client said that it answers.
func (s *Server) CanDiagnose() bool { return s.clientFacts().diagnostics }

// Diagnostics asks the client. A client that did not promise to answer, or does
// not know the request after all, is agent.ErrNoDiagnostics.
func (s *Server) Diagnostics(ctx context.Context, paths []string) ([]agent.Diagnostic, error) {
	if !s.CanDiagnose() {
		return nil, agent.ErrNoDiagnostics
	}
	var p diagnosticsParams
	for _, path := range paths {
		p.URIs = append(p.URIs, s.clientURI(path))
	}
	raw, err := ourJSON(p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := joined(ctx, s.ctx)
	defer cancel()
	var answer jsonrpc2.RawMessage
	if _, err := s.conn.Call(ctx, askDiagnostics, raw, &answer); err != nil {
		return nil, fmt.Errorf("the editor did not tell its diagnostics: %w", err)
	}
	if isNull(answer) {
		return nil, agent.ErrNoDiagnostics
	}
	var res diagnosticsResult
	if err := json.Unmarshal(answer, &res); err != nil {
		return nil, fmt.Errorf("the editor's diagnostics cannot be read: %w", err)
	}
	var out []agent.Diagnostic
	for _, f := range res.Files {
		u, err := parseURI(f.URI)
		if err != nil {
			continue
		}
		path := docPath(u)
		if path == "" {
			continue
		}
		for _, d := range f.Diagnostics {
			out = append(out, agent.Diagnostic{
				Path: path, Line: d.Range.Start.Line + 1, Column: d.Range.Start.Character + 1,
				Severity: severity(d.Severity), Source: d.Source, Code: string(d.Code), Message: string(d.Message),
			})
		}
	}
	return out, nil
}

// clientURI is how the client spells the file: as it opened it, if it did.
func (s *Server) clientURI(path string) string {
	u := pathURI(path)
	if d, ok := s.docs.get(docKey(u)); ok {
		return d.uri
	}
	return string(u)
}

// severity is LSP's number as a word; a missing one is an error, as clients
// show it.
func severity(n int) agent.Severity {
	switch n {
	case 2:
		return agent.SeverityWarning
	case 3:
		return agent.SeverityInfo
	case 4:
		return agent.SeverityHint
	}
	return agent.SeverityError
}

// anyText is a JSON string or number as text.
type anyText string

// UnmarshalJSON takes anything: what is neither is nothing.
func (t *anyText) UnmarshalJSON(raw []byte) error {
	var s string
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || isNull(raw):
	case raw[0] == '"':
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
	default:
		s = string(bytes.TrimSpace(raw))
	}
	*t = anyText(s)
	return nil
}

// flatText is a JSON string, or a MarkupContent (LSP 3.18), as text.
type flatText string

// UnmarshalJSON takes both forms.
func (t *flatText) UnmarshalJSON(raw []byte) error {
	var s string
	if len(raw) > 0 && raw[0] == '{' {
		var m struct{ Value string }
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		s = m.Value
	} else if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	*t = flatText(strings.TrimSpace(s))
	return nil
}
