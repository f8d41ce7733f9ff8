package profile

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Profile is what is known of a family of models. The JSON names are those of
// the user's configuration.
type Profile struct {
	Name string `json:"name,omitempty"`
	// Match lists patterns (path.Match, letter case ignored) for the name of the
	// model, with and without what stands before its last slash.
	Match []string `json:"match,omitempty"`
	// Protocol is how the model gives commands: tags (also "") or native.
	Protocol string `json:"protocol,omitempty"`
	// NoTools: the model or its server cannot call tools at all.
	NoTools bool `json:"no_tools,omitempty"`
	// Teach is the channel whose use for commands the prompt teaches besides the
	// answer: "" = none, "reasoning" = the thinking too.
	Teach string `json:"teach,omitempty"`
	// StartInThink: the server eats the opening tag of the think block.
	StartInThink bool `json:"start_in_think,omitempty"`
	// Context is the size of the context and MaxOutput the longest answer, in
	// tokens; 0 = unknown.
	Context   int `json:"context,omitempty"`
	MaxOutput int `json:"max_output,omitempty"`
	// SendReasoning: reasoning goes back with the history.
	SendReasoning bool `json:"send_reasoning,omitempty"`
	// Extra fields go into the request body.
	Extra map[string]any `json:"extra_body,omitempty"`
	// Prices of a million tokens, in US dollars; 0 = unknown.
	PriceInput  float64 `json:"price_input,omitempty"`
	PriceOutput float64 `json:"price_output,omitempty"`
	PriceCached float64 `json:"price_cached,omitempty"`
	// Source says where the numbers of a row of the table stand, and when they
	// were read.
	Source string `json:"-"`
}

// The values of Protocol and Teach.
const (
	Tags      = "tags"
	Native    = "native"
	Reasoning = "reasoning"
)

// Overrides are the user's rows, by name. A row whose name is in the table
// changes only the fields that it has; any other is a new one and goes first.
type Overrides map[string]any

// Lookup returns the profile of a model: the first row that matches, the
// user's own rows first; the zero Profile with the name "default" when none
// does. The error says which of the user's rows cannot be read.
func Lookup(model string, user Overrides) (Profile, error) {
	table, err := merge(user)
	for _, p := range table {
		if p.matches(model) {
			return p, err
		}
	}
	return Profile{Name: "default"}, err
}

// Names lists the rows of the table, for the documentation.
func Names() []string {
	var out []string
	for _, p := range table() {
		out = append(out, p.Name)
	}
	return out
}

// Models lists the models that the user's own rows name, as they are spelled
// there: patterns are no names.
func Models(user Overrides) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(user)) {
		row := Profile{Name: name}
		known := slices.Contains(Names(), name)
		if row.change(user[name]) != nil {
			continue
		}
		if len(row.Match) == 0 && !known {
			row.Match = []string{name} // a row for one model
		}
		for _, m := range row.Match {
			if !strings.ContainsAny(m, `*?[\`) {
				out = append(out, m)
			}
		}
	}
	return out
}

func merge(user Overrides) ([]Profile, error) {
	rows := table()
	var own []Profile
	var problem error
	for _, name := range slices.Sorted(maps.Keys(user)) {
		i := slices.IndexFunc(rows, func(p Profile) bool { return p.Name == name })
		row := Profile{Name: name}
		if i >= 0 {
			row = rows[i]
			row.Extra = maps.Clone(row.Extra)
		}
		if err := row.change(user[name]); err != nil {
			problem = fmt.Errorf("profile %s: %w", name, err)
			continue
		}
		row.Name = name
		switch {
		case i >= 0:
			rows[i] = row
		case len(row.Match) == 0:
			row.Match = []string{name} // a row for one model
			fallthrough
		default:
			own = append(own, row)
		}
	}
	return append(own, rows...), problem
}

// change takes the fields that a user's row has.
func (p *Profile) change(row any) error {
	raw, err := json.Marshal(row)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil {
		return err
	}
	switch {
	case p.Protocol != "" && p.Protocol != Tags && p.Protocol != Native:
		return fmt.Errorf("protocol %q is neither tags nor native", p.Protocol)
	case p.Teach != "" && p.Teach != Reasoning:
		return fmt.Errorf("teach %q is neither empty nor reasoning", p.Teach)
	}
	for _, m := range p.Match {
		if _, err := path.Match(m, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", m, err)
		}
	}
	return nil
}

func (p *Profile) matches(model string) bool {
	full := strings.ToLower(model)
	last := full[strings.LastIndexByte(full, '/')+1:]
	return slices.ContainsFunc(p.Match, func(pattern string) bool {
		pattern = strings.ToLower(pattern)
		a, _ := path.Match(pattern, full)
		b, _ := path.Match(pattern, last)
		return a || b
	})
}
