package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"thinkflow/ledger"
	"thinkflow/workspace/review"
)

// TestWordsOfTheChannel: what the model is told of a command is in the words in
// which it gave it.
func TestWordsOfTheChannel(t *testing.T) {
	o := outcome{id: 2, channel: "text", name: "tf-edit", path: "a.go", status: string(ledger.StatusFailed), message: "there is nothing to edit; tf-write creates it"}
	require.Equal(t, "2 tf-edit a.go: failed: there is nothing to edit; tf-write creates it", o.line())
	require.Equal(t, "command 2", o.nth())
	o.channel = ChannelNative
	require.Equal(t, "call 2, edit_file a.go: failed: there is nothing to edit; write_file creates it", o.line())
	require.Equal(t, "call 2", o.nth())

	for channel, want := range map[string]string{
		"text": "3 tf-write", "reasoning": "3 tf-write", "task1.2.text": "3 tf-write",
		"native": "call 3, write_file", "native.retry1": "call 3, write_file", "task1.2.native": "call 3, write_file",
	} {
		require.Equal(t, want, commandName(ledger.Key{Channel: channel, ID: 3}, "tf-write"), channel)
	}
	require.Equal(t, " (command 1, 3; call 2)", commandsOf([]review.Change{{Hunk: review.Hunk{Keys: []string{"r/1/text/1", "r/1/native/2"}}}, {Hunk: review.Hunk{Keys: []string{"r/1/text/3", "r/1/text/1"}}}}))
	require.Equal(t, "go on from there", (&setup{native: true}).onward())
	require.Equal(t, "go on from there, with new ids", (&setup{}).onward())
}

// TestPersonClock: questions that are open at the same time count once.
func TestPersonClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p personClock
		first := p.wait(time.Now)
		time.Sleep(time.Minute) // virtual
		second := p.wait(time.Now)
		time.Sleep(time.Minute)
		first()
		time.Sleep(time.Minute)
		require.Equal(t, 3*time.Minute, p.total(time.Now()), "one is still open")
		second()
		time.Sleep(time.Hour)
		require.Equal(t, 3*time.Minute, p.total(time.Now()))
	})
}
