package lsp

import (
	"encoding/json"
	"testing"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// TestDocPath: cases LE-13 and LE-14: all spellings of a URI are one document, no
// scheme but file: ever names a path, and encoding is the inverse of decoding.
func TestDocPath(t *testing.T) {
	rows := []struct{ uri, path, key string }{
		{"file:///ws/a.go", "/ws/a.go", "/ws/a.go"},
		{"file:///c%3A/Users/dev/p/a.go", "c:/Users/dev/p/a.go", "c:/Users/dev/p/a.go"},
		{"file:///C:/Users/dev/p/a.go", "c:/Users/dev/p/a.go", "c:/Users/dev/p/a.go"},
		{"file:///c%3a/Users/dev/p/a.go", "c:/Users/dev/p/a.go", "c:/Users/dev/p/a.go"},
		{"file://localhost/ws/a.go", "/ws/a.go", "/ws/a.go"},
		{"file:///ws/a%20b.txt", "/ws/a b.txt", "/ws/a b.txt"},
		{"file:///ws/a%2520b.txt", "/ws/a%20b.txt", "/ws/a%20b.txt"},
		{"untitled:Untitled-1", "", "untitled:Untitled-1"},
		{"git:/ws/a.go?HEAD", "", "git:/ws/a.go?HEAD"},
		{"vscode-notebook-cell:/ws/a.ipynb#x", "", "vscode-notebook-cell:/ws/a.ipynb#x"},
	}
	for _, row := range rows {
		u, err := parseURI(row.uri)
		if err != nil {
			t.Fatal(err)
		}
		if got := docPath(u); got != row.path {
			t.Errorf("%s: path %q, want %q", row.uri, got, row.path)
		}
		if got := docKey(u); got != row.key {
			t.Errorf("%s: key %q, want %q", row.uri, got, row.key)
		}
	}
	for _, bad := range []string{"nonsense", "", "C:\\x", ":x"} {
		if u, err := parseURI(bad); err == nil {
			t.Errorf("%q is taken for %s", bad, u)
		}
	}
}

func TestPathURI(t *testing.T) {
	rows := []struct{ path, uri string }{
		{"/ws/a b.txt", "file:///ws/a%20b.txt"},
		{"/ws/a%20b.txt", "file:///ws/a%2520b.txt"},
		{"/ws/c#d?e.txt", "file:///ws/c%23d%3Fe.txt"},
		{"/ws/ü/日.md", "file:///ws/%C3%BC/%E6%97%A5.md"},
		{"/ws/new dir/n.txt", "file:///ws/new%20dir/n.txt"},
	}
	for _, row := range rows {
		if got := pathURI(row.path); string(got) != row.uri {
			t.Errorf("%s: %s, want %s", row.path, got, row.uri)
		}
		if got := docPath(pathURI(row.path)); got != row.path {
			t.Errorf("%s comes back as %s", row.path, got)
		}
	}
}

// TestSpelledURI: requests use the spelling of the client.
func TestSpelledURI(t *testing.T) {
	rows := []struct{ name, spelled, text string }{
		{"canonical", "file:///ws/a.go", ""},
		{"drive letter", "file:///C:/Users/a.go", ""},
		{"lower-case escapes", "file:///c%3a/a.go", ""},
		{"not encoded", "file:///ws/a(1) b.go", ""},
		{"a text that looks like a member", "file:///C:/a.go", `{"uri": "file:///c%3A/a.go"}`},
		{"untitled", "untitled:Untitled-1", ""},
	}
	for _, row := range rows {
		raw, err := json.Marshal(map[string]any{"textDocument": map[string]any{
			"languageId": "uri", "text": row.text, "uri": row.spelled, "version": 1,
		}})
		if err != nil {
			t.Fatal(err)
		}
		var p protocol.DidOpenTextDocumentParams
		if err := protocol.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		if got := spelledURI(raw, p.TextDocument.URI); got != row.spelled {
			t.Errorf("%s: %s, want %s", row.name, got, row.spelled)
		}
	}
	if got := spelledURI([]byte(`{}`), "file:///x"); got != "file:///x" {
		t.Errorf("without a member: %s", got)
	}
}

func FuzzPathURI(f *testing.F) {
	f.Add("/ws/a b.txt")
	f.Add("/ws/%41/é/?#[]@!$&'()*+,;=")
	f.Fuzz(func(t *testing.T, path string) {
		if len(path) < 2 || path[0] != '/' || path[1] == '/' || len(path) > 2 && path[2] == ':' {
			return // UNC and drives are spelled in their own ways
		}
		for _, c := range path {
			if c == 0xFFFD || c == '\\' || c == 0 {
				return
			}
		}
		u, err := uri.Parse(string(pathURI(path)))
		if err != nil {
			t.Fatal(err)
		}
		if got := docPath(u); got != path {
			t.Fatalf("%q -> %s -> %q", path, u, got)
		}
	})
}
