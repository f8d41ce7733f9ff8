package agent

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/internal/config"
)

// offering is a model whose endpoint tells what it has, or why not.
type offering struct {
	answers
	models []ModelInfo
	err    error
}

func (o *offering) Models(context.Context) ([]ModelInfo, error) { return o.models, o.err }

// TestModels: what the endpoint offers, what the user's profiles name, and the
// current one, each once; a silent endpoint leaves the rest.
func TestModels(t *testing.T) {
	cfg := config.Config{Profiles: map[string]any{
		"mine":  map[string]any{"context": 4096, "no_tools": true},
		"globs": map[string]any{"match": []any{"own-*", "own-exact"}},
		"bad":   map[string]any{"protocol": "smoke"},
	}}
	o := &offering{models: []ModelInfo{{"b", 1000}, {"mine", 2000}, {"b", 5}}}
	e := New(Options{Config: cfg, Model: o})
	list, err := e.Models(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, []ModelChoice{
		{ID: "b", Current: true, Context: 1000, Profile: "default", Protocol: "tags"},
		{ID: "mine", Context: 2000, Profile: "mine", Protocol: "tags", NoTools: true},
		{ID: "own-exact", Profile: "globs", Protocol: "tags"},
	}, list)
	o.models, o.err = nil, errors.New("no list of models within 20s")
	list, err = e.Models(t.Context(), "now")
	require.ErrorContains(t, err, "no list")
	require.Len(t, list, 3)
	require.Equal(t, ModelChoice{ID: "mine", Context: 4096, Profile: "mine", Protocol: "tags", NoTools: true}, list[0])
}
