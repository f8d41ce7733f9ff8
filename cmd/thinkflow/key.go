package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"thinkflow/internal/secretstore"
	"thinkflow/internal/term"
)

type keyCmd struct {
	Set    keySetCmd    `cmd:"" help:"Store the key of the configured endpoint; it is asked for, or read from stdin."`
	Delete keyDeleteCmd `cmd:"" help:"Remove the key of the configured endpoint."`
}

type keySetCmd struct {
	settings
	File string `placeholder:"FILE" help:"Write the key to a file with mode 0600 instead, for machines without a key ring; set key_file to it."`
}

type keyDeleteCmd struct{ settings }

// maxKey bounds the length of a key, in bytes.
const maxKey = 16 << 10

func (c *keySetCmd) Run(a *app) error {
	loaded, err := a.load(&c.settings, nil, nil)
	if err != nil {
		return err
	}
	url := loaded.Config.BaseURL
	key, err := a.readKey("Key for " + url + ": ")
	if err != nil {
		return err
	}
	_ = a.redact.Add(key)
	if c.File != "" {
		if err := secretstore.WriteFile(c.File, key); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "written to %s; set key_file = %q\n", term.VisibleName(c.File), c.File)
		return nil
	}
	if a.keys == nil {
		return secretstore.ErrUnavailable
	}
	if err := a.keys.Set(url, key); err != nil {
		if errors.Is(err, secretstore.ErrUnavailable) {
			return fmt.Errorf("%w: use thinkflow key set --file FILE, or the variable %s", err, loaded.Config.KeyEnv)
		}
		return err
	}
	account, _ := secretstore.Account(url)
	fmt.Fprintf(a.stdout, "stored in the key ring for %s\n", account)
	if strings.HasPrefix(string(loaded.KeySource), "environment") {
		fmt.Fprintf(a.stdout, "the variable %s is set and comes first\n", loaded.Config.KeyEnv)
	}
	return nil
}

func (c *keyDeleteCmd) Run(a *app) error {
	loaded, err := a.load(&c.settings, nil, nil)
	if err != nil {
		return err
	}
	if a.keys == nil {
		return secretstore.ErrUnavailable
	}
	if err := a.keys.Delete(loaded.Config.BaseURL); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, "removed from the key ring")
	return nil
}

// readKey asks at the terminal, without an echo, or reads one line of stdin.
func (a *app) readKey(prompt string) (string, error) {
	if in, ok := a.stdin.(*os.File); ok && term.IsTerminal(a.stdin) {
		fmt.Fprint(a.stderr, prompt)
		key, err := term.ReadSecret(in)
		fmt.Fprintln(a.stderr)
		return key, err
	}
	data, err := io.ReadAll(io.LimitReader(a.stdin, maxKey+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the key from stdin: %w", err)
	}
	if len(data) > maxKey {
		return "", usagef("this is too long for a key")
	}
	return strings.TrimSpace(string(data)), nil
}
