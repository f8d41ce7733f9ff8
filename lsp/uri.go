package lsp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"go.lsp.dev/uri"
)

// parseURI reads a URI that a client gave as plain text. uri.Parse alone takes
// anything, "nonsense" as file:///nonsense.
func parseURI(s string) (uri.URI, error) {
	if i := strings.IndexByte(s, ':'); i < 2 { // one letter is a drive
		return "", fmt.Errorf("%q is no URI", s)
	}
	return uri.Parse(s)
}

// docPath is the absolute path of a file: URI with a lower-case drive letter,
// or "" for every other scheme (untitled:, git:, …), which never touches the
// disk. FsPath alone would return a path for those too.
func docPath(u uri.URI) string {
	if !strings.EqualFold(u.Scheme(), "file") {
		return ""
	}
	if strings.EqualFold(u.Authority(), "localhost") { // RFC 8089: the same as none
		u = "file://" + u[strings.Index(string(u), "localhost")+len("localhost"):]
	}
	return filepath.FromSlash(u.FsPath())
}

// docKey is what identifies a document: its decoded path, so that all
// spellings of one URI are one document, or the URI itself when it is no file.
func docKey(u uri.URI) string {
	if p := docPath(u); p != "" {
		return p
	}
	return string(u)
}

// pathURI encodes an absolute path as VS Code does: everything but unreserved
// characters and '/' is percent-encoded, so "a b" and "a%20b" stay two files.
func pathURI(path string) uri.URI { return uri.File(path) }

// spelledURI finds how the client spelled the URI of a document: decoding
// normalises URIs (C: and c%3A, letter case of escapes), but requests use the
// client's own spelling. raw are the notification's params; decoded is the
// normalised URI, returned where the spelling cannot be found.
//
// A quotation mark inside a JSON string is escaped, so the bytes "uri" followed
// by a colon are always a member name.
func spelledURI(raw []byte, decoded uri.URI) string {
	for at := 0; ; {
		i := bytes.Index(raw[at:], []byte(`"uri"`))
		if i < 0 {
			return string(decoded)
		}
		at += i + len(`"uri"`)
		rest := bytes.TrimLeft(raw[at:], " \t\r\n")
		if len(rest) == 0 || rest[0] != ':' {
			continue
		}
		rest = bytes.TrimLeft(rest[1:], " \t\r\n")
		var s string
		if err := json.NewDecoder(bytes.NewReader(rest[:min(len(rest), 16<<10)])).Decode(&s); err != nil {
			continue
		}
		if u, err := uri.Parse(s); err == nil && u == decoded {
			return s
		}
	}
}
