package agent

import (
	"fmt"
	"slices"
	"strings"

	"thinkflow/ledger"
	"thinkflow/parser"
)

// Names of commands in messages for the model. With tags a command is "command 2
// (tf-edit a.go)"; as a native call it is "call 2 (edit_file a.go)", for a model
// that was never told of tags would look for a command 2 in vain.

// nth names a command by its number: command 2, or call 2 for a native one.
func (o *outcome) nth() string {
	if o.channel == ChannelNative {
		return fmt.Sprintf("call %d", o.id)
	}
	return fmt.Sprintf("command %d", o.id)
}

// tool is the name under which the model gave the command.
func (o *outcome) tool() string {
	if o.channel == ChannelNative {
		return nativeName(o.name)
	}
	return o.name
}

// fate says in words that a command did not do what it should.
func (o *outcome) fate() string {
	if o.status == string(ledger.StatusUncertain) {
		return "may or may not have been applied"
	}
	return "was not applied"
}

// said is a text about the command in the words of its channel.
func (o *outcome) said(text string) string {
	if o.channel == ChannelNative {
		return inNativeWords(text)
	}
	return text
}

// commandName names a command of the ledger by number and tool, as its model
// knows it.
func commandName(k ledger.Key, tag string) string {
	if cameNative(k) {
		return fmt.Sprintf("call %d, %s", k.ID, nativeName(tag))
	}
	return fmt.Sprintf("%d %s", k.ID, tag)
}

// cameNative tells from the channel of a key (native, task2.3.native,
// native.retry1) that the command was a native call.
func cameNative(k ledger.Key) bool {
	return slices.Contains(strings.Split(k.Channel, "."), string(ChannelNative))
}

// nativeNames are the tools that stand for tags.
var nativeNames = [...]struct {
	tag  parser.Name
	tool string
}{
	{parser.Write, "write_file"}, {parser.Edit, "edit_file"}, {parser.Append, "append_file"}, {parser.Mkdir, "make_dir"},
	{parser.Touch, "touch_file"}, {parser.Copy, "copy_file"}, {parser.Move, "move_file"}, {parser.Delete, "delete_file"},
	{parser.Read, "read_file"}, {parser.Bash, "bash"},
}

// nativeName is the tool that stands for a tag.
func nativeName(tag string) string {
	for _, n := range nativeNames {
		if string(n.tag) == tag {
			return n.tool
		}
	}
	return tag
}

// inNativeWords puts the names of tools where a message names tags.
func inNativeWords(s string) string {
	if !strings.Contains(s, "tf-") {
		return s
	}
	var pairs []string
	for _, n := range nativeNames {
		pairs = append(pairs, string(n.tag), n.tool)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// onward ends a message after which the model is to go on. New ids are a matter
// of tags only.
func (s *setup) onward() string {
	if s.native {
		return "go on from there"
	}
	return "go on from there, with new ids"
}
