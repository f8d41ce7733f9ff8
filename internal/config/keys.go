package config

import (
	"reflect"
	"strings"
	"time"
)

// Key describes one setting, as its tags say.
type Key struct {
	Group   string   // heading in the reference
	Name    string   // snake_case: the key in the file and in editor settings
	Env     []string // environment variables; the first that is set counts
	Type    string   // for people: text, number, true or false, duration, size, list, table
	Default string   // as one would write it; "" = none
	Enum    []string
	Rules   bool   // lines of which the first word is one of Enum
	Unit    string // bytes, tokens, turns
	Min     string
	Max     string
	Machine bool // must not come from settings stored in a workspace
	Doc     string

	field int
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	configType   = reflect.TypeFor[Config]()
)

// Keys lists every setting in the order of the struct.
func Keys() []Key {
	var keys []Key
	group := ""
	for i := range configType.NumField() {
		f := configType.Field(i)
		name := f.Tag.Get("key")
		if g := f.Tag.Get("group"); g != "" {
			group = g
		}
		if name == "-" || name == "" {
			continue
		}
		k := Key{
			Group: group, Name: name, Default: f.Tag.Get("default"), Unit: f.Tag.Get("unit"),
			Min: f.Tag.Get("min"), Max: f.Tag.Get("max"), Rules: f.Tag.Get("rules") == "true", Machine: f.Tag.Get("scope") == "machine",
			Doc: f.Tag.Get("doc"), Type: typeName(f.Type, f.Tag.Get("unit")), field: i,
		}
		if e := f.Tag.Get("env"); e != "" {
			k.Env = strings.Split(e, ",")
		}
		if e := f.Tag.Get("enum"); e != "" {
			k.Enum = strings.Split(e, ",")
		}
		keys = append(keys, k)
	}
	return keys
}

func typeName(t reflect.Type, unit string) string {
	if t == durationType {
		return "duration"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem(), unit)
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		if unit == "bytes" {
			return "size"
		}
		return "whole number"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list"
	case reflect.Map:
		return "table"
	}
	return "text"
}

// nearest is the name of the known key that is most like the unknown one, or ""
// when none is close.
func nearest(name string, keys []Key) string {
	best, dist := "", len(name)/2+1
	norm := strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(name))
	for _, k := range keys {
		if d := distance(norm, strings.ReplaceAll(k.Name, "_", "")); d < dist {
			best, dist = k.Name, d
		}
	}
	return best
}

// distance is the edit distance of a and b in bytes, where two neighbours that
// changed places count once.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				cost = min(cost, before[j-1]+1)
			}
			row[j+1] = min(cost, row[j]+1, last[j+1]+1)
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
