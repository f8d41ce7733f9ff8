package lsp

import (
	"os"
	"strings"
	"testing"
)

// TestProtocolDocument: every method, notification and command is described.
func TestProtocolDocument(t *testing.T) {
	doc, err := os.ReadFile("protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	names := append(newServer(Options{}).methodNames(), notifyEvent, notifyPreview, askDiagnostics)
	for _, name := range append(names, commandNames...) {
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("protocol.md does not describe %s", name)
		}
	}
}
