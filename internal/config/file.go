package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseFile decodes TOML into its top-level values and finds the line (from 1)
// on which each of them begins.
func parseFile(path string, data []byte) (map[string]any, map[string]int, error) {
	data = []byte(strings.TrimPrefix(string(data), "\ufeff")) // some editors on Windows write one
	values := map[string]any{}
	if err := toml.Unmarshal(data, &values); err != nil {
		var de *toml.DecodeError
		if errors.As(err, &de) {
			row, col := de.Position()
			return nil, nil, &Error{Where: fmt.Sprintf("%s:%d:%d", path, row, col), Msg: "not valid TOML: " + strings.TrimPrefix(de.Error(), "toml: ")}
		}
		return nil, nil, &Error{Where: path, Msg: "not valid TOML: " + err.Error()}
	}
	return values, keyLines(data), nil
}

// keyLines maps each top-level key of a valid document to the first line (from
// 1) that mentions it.
func keyLines(data []byte) map[string]int {
	lines := map[string]int{}
	var p unstable.Parser
	p.Reset(data)
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable, unstable.KeyValue:
		default:
			continue
		}
		it := e.Key()
		if !it.Next() {
			continue
		}
		name := string(it.Node().Data)
		if e.Kind == unstable.KeyValue && table != "" {
			name = table
		}
		if e.Kind != unstable.KeyValue {
			table = name
		}
		if _, seen := lines[name]; !seen {
			lines[name] = p.Shape(it.Node().Raw).Start.Line
		}
	}
	return lines
}

// sortedByLine lists the keys in the order of the file.
func sortedByLine(values map[string]any, lines map[string]int) []string {
	names := slices.Sorted(maps.Keys(values))
	slices.SortStableFunc(names, func(a, b string) int { return lines[a] - lines[b] })
	return names
}
