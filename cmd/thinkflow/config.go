package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"thinkflow/internal/config"
	"thinkflow/internal/term"
)

type configCmd struct {
	settings
	JSON bool `name:"json" help:"As one JSON object: key → value and source."`
}

// Run prints the configuration even when parts of it are wrong: that is when
// one wants to see it.
func (c *configCmd) Run(a *app) error {
	loaded, err := a.load(&c.settings, nil, nil)
	if loaded == nil {
		return err
	}
	for _, w := range loaded.Warnings {
		fmt.Fprintln(a.stderr, "thinkflow: "+term.Visible(w))
	}
	if c.JSON {
		return errors.Join(c.printJSON(a, loaded), err)
	}
	screen, done := a.screen()
	defer done()
	showConfig(screen, loaded)
	return err
}

// showConfig writes every setting and where it came from.
func showConfig(screen *term.Renderer, loaded *config.Loaded) {
	state := "does not exist"
	if loaded.FileRead {
		state = "read"
	}
	screen.Dim("# file " + loaded.File + ": " + state)
	key := "not set"
	if loaded.Config.APIKey.Set() {
		key = "set, from " + string(loaded.KeySource)
	}
	screen.Dim("# API key: " + key)
	var rows [][]string
	for _, k := range config.Keys() {
		src := string(loaded.Sources[k.Name])
		if src == string(config.SourceDefault) {
			src = ""
		} else {
			src = "# " + src
		}
		rows = append(rows, []string{k.Name, "= " + literal(k, &loaded.Config), src})
	}
	screen.Table(nil, rows)
}

// literal is a value as TOML has it.
func literal(k config.Key, c *config.Config) string {
	v := k.Value(c)
	switch k.Type {
	case "text", "duration":
		return strconv.Quote(v)
	case "list":
		if v == "" {
			return "[]"
		}
		return `["` + strings.ReplaceAll(v, ", ", `", "`) + `"]`
	case "table":
		return "{ " + v + " }"
	case "number":
		if v == "" {
			return "(not set)"
		}
	}
	return v
}

func (c *configCmd) printJSON(a *app, loaded *config.Loaded) error {
	type value struct {
		Value  string `json:"value"`
		Source string `json:"source"`
	}
	all := map[string]value{}
	for _, k := range config.Keys() {
		all[k.Name] = value{k.Value(&loaded.Config), string(loaded.Sources[k.Name])}
	}
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{
		"file": loaded.File, "file_read": loaded.FileRead, "api_key": loaded.Config.APIKey.String(),
		"api_key_source": string(loaded.KeySource), "settings": all,
	})
}
