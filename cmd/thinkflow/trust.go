package main

import (
	"fmt"
	"os"
	"path/filepath"

	"thinkflow/internal/term"
	"thinkflow/internal/trust"
)

type trustCmd struct {
	List   trustListCmd   `cmd:"" default:"1" help:"What was agreed to, and refused."`
	Add    trustAddCmd    `cmd:"" help:"Trust exactly the present content of a file."`
	Remove trustRemoveCmd `cmd:"" help:"Forget every answer about a file."`
}

type trustListCmd struct{ settings }

type trustAddCmd struct {
	settings
	Kind string `default:"" enum:",rules,verify,skill,workflow,mcp" help:"What it would be used as; by default what its name says: rules for AGENTS.md, verify for .thinkflow/verify."`
	File string `arg:"" help:"The file."`
}

type trustRemoveCmd struct {
	settings
	File string `arg:"" help:"The file."`
}

// store is the trust store of the configured state folder.
func (a *app) store(s *settings) (*trust.Store, error) {
	loaded, err := a.load(s, nil, nil)
	if err != nil {
		return nil, err
	}
	dir, err := folder("")
	if err != nil {
		return nil, err
	}
	state, err := stateDir(&loaded.Config, dir)
	if err != nil {
		return nil, err
	}
	return trust.Open(filepath.Dir(filepath.Dir(state)), nil), nil
}

func (c *trustListCmd) Run(a *app) error {
	store, err := a.store(&c.settings)
	if err != nil {
		return err
	}
	entries, err := store.List()
	if err != nil {
		return err
	}
	for _, e := range entries {
		what := "trusted"
		if e.No {
			what = "refused"
		}
		fmt.Fprintf(a.stdout, "%-8s %-8s %s  %s\n", what, e.Kind, e.Hash[:12], term.VisibleName(e.Path))
	}
	return nil
}

func (c *trustAddCmd) Run(a *app) error {
	store, err := a.store(&c.settings)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(c.File)
	if err != nil {
		return err
	}
	kind := trust.Kind(c.Kind)
	switch {
	case kind != "":
	case filepath.Base(path) == "AGENTS.md":
		kind = trust.Rules
	case filepath.Base(path) == "verify" && filepath.Base(filepath.Dir(path)) == ".thinkflow":
		kind = trust.Verify
	default:
		return usagef("%s: say with --kind what it would be used as", c.File)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := store.Grant(kind, path, trust.Hash(string(data))); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "trusted as %s until it changes: %s\n", kind, term.VisibleName(path))
	return nil
}

func (c *trustRemoveCmd) Run(a *app) error {
	store, err := a.store(&c.settings)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(c.File)
	if err != nil {
		return err
	}
	n, err := store.Revoke("", path)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%d answers forgotten\n", n)
	return nil
}
