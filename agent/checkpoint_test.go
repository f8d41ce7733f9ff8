package agent

import (
	"math/rand"
	"reflect"
	"testing"
	"testing/quick"

	"github.com/stretchr/testify/require"

	"thinkflow/internal/config"
)

// TestOutcomeIsSavedWhole: no field is forgotten.
func TestOutcomeIsSavedWhole(t *testing.T) {
	require.Equal(t, reflect.TypeFor[outcome]().NumField(), reflect.TypeFor[savedOutcome]().NumField())
	v, ok := quick.Value(reflect.TypeFor[savedOutcome](), rand.New(rand.NewSource(1)))
	require.True(t, ok)
	s := v.Interface().(savedOutcome)
	require.Equal(t, s, saveOutcome(s.outcome()))
}

// TestSessionIsSavedWhole: whoever adds a field to the session decides whether
// it is stored. Those that are not: what only one process needs.
func TestSessionIsSavedWhole(t *testing.T) {
	notSaved := []string{"mu", "running", "waits", "sent", "procs"}
	inOther := []string{"history"}
	require.Equal(t, reflect.TypeFor[session]().NumField()-len(notSaved)-len(inOther)+1, // Messages counts the history
		reflect.TypeFor[savedSession]().NumField(), "see session.save and savedSession.restore")
}

func TestSessionRoundTrip(t *testing.T) {
	c := config.Defaults()
	v, ok := quick.Value(reflect.TypeFor[savedSession](), rand.New(rand.NewSource(1)))
	require.True(t, ok)
	want := v.Interface().(savedSession)
	want.Granted, want.Thoughts, want.Messages = nil, nil, 1
	got, messages := want.restore(&c, []Message{{Role: RoleUser, Content: "x"}}).save()
	require.Equal(t, []Message{{Role: RoleUser, Content: "x"}}, messages)
	got.Granted, got.Thoughts = nil, nil
	a, err := pack(want)
	require.NoError(t, err)
	b, err := pack(got)
	require.NoError(t, err)
	require.Equal(t, a, b)
}
