package lsp

import (
	"reflect"
	"strings"
	"testing"

	"go.lsp.dev/protocol"

	"thinkflow/workspace"
)

func TestPlannedEdits(t *testing.T) {
	rows := []struct {
		name, text string
		in         []workspace.Edit
		want       []edit
		err        string
	}{
		{"sorted", "aa\nbb\ncc\n", []workspace.Edit{{Start: 6, End: 8, New: "C"}, {Start: 0, End: 2, New: "A"}}, []edit{{0, 2, "A"}, {6, 8, "C"}}, ""},
		{"two inserts at one place (LE-18)", "package i\nx", []workspace.Edit{{Start: 10, End: 10, New: "import A\n"}, {Start: 10, End: 10, New: "import B\n"}}, []edit{{10, 10, "import A\nimport B\n"}}, ""},
		{"touching", "abcd", []workspace.Edit{{Start: 0, End: 2, New: "x"}, {Start: 2, End: 4, New: "y"}}, []edit{{0, 4, "xy"}}, ""},
		{"no-op", "abcd", []workspace.Edit{{Start: 0, End: 2, New: "ab"}}, []edit{}, ""},
		{"start after the cr", "a\r\nb", []workspace.Edit{{Start: 2, End: 4, New: "X"}}, []edit{{1, 4, "\rX"}}, ""},
		{"end before the lf", "a\r\nb", []workspace.Edit{{Start: 0, End: 2, New: "X"}}, []edit{{0, 3, "X\n"}}, ""},
		{"inside a character", "é", []workspace.Edit{{Start: 1, End: 2, New: "\xa8"}}, []edit{{0, 2, "è"}}, ""},
		{"lines at the end (LE-03)", "a\nb\n", []workspace.Edit{{Start: 4, End: 4, New: "c\n"}}, []edit{{3, 3, "\nc"}}, ""},
		{"lines at the end, crlf", "a\r\n", []workspace.Edit{{Start: 3, End: 3, New: "b\r\n"}}, []edit{{1, 1, "\r\nb"}}, ""},
		{"other ending at the end", "a\n", []workspace.Edit{{Start: 2, End: 2, New: "b\r\n"}}, []edit{{2, 2, "b\r\n"}}, ""},
		{"no line at the end", "a\n", []workspace.Edit{{Start: 2, End: 2, New: "b"}}, []edit{{2, 2, "b"}}, ""},
		{"text without final line break (LE-04)", "a\nb", []workspace.Edit{{Start: 3, End: 3, New: "\nc\n"}}, []edit{{3, 3, "\nc\n"}}, ""},
		{"overlap", "abcd", []workspace.Edit{{Start: 0, End: 3}, {Start: 2, End: 4}}, nil, "overlap"},
		{"outside", "abcd", []workspace.Edit{{Start: 0, End: 5}}, nil, "outside"},
		{"backwards", "abcd", []workspace.Edit{{Start: 3, End: 2}}, nil, "outside"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, err := plannedEdits(newText(row.text), row.in)
			if row.err != "" {
				if err == nil || !strings.Contains(err.Error(), row.err) {
					t.Fatalf("got %v, %v; want an error with %q", got, err, row.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, row.want) {
				t.Fatalf("got %+v, %v; want %+v", got, err, row.want)
			}
		})
	}
}

// TestWorkspaceEditJSON: kinds are present, versions kept, null where a document
// is not open.
func TestWorkspaceEditJSON(t *testing.T) {
	version := int32(4)
	edits := []protocol.TextEdit{{Range: protocol.Range{End: pos(0, 3)}, NewText: "<b>&"}}
	snap := &snapshot{uri: "file:///C:/ws/a b.txt", version: 0}
	all := clientFacts{documentChanges: true, create: true}
	rows := []struct {
		name string
		edit protocol.WorkspaceEdit
		want string
	}{
		{
			"create, edit, rename, delete",
			protocol.WorkspaceEdit{DocumentChanges: []protocol.DocumentChange{
				createFile("file:///ws/n.txt"), textDocumentEdit("file:///ws/a.txt", &version, edits),
				renameFile("file:///ws/a.txt", "file:///ws/b.txt"), deleteFile("file:///ws/d", true),
			}},
			`{"documentChanges":[{"kind":"create","uri":"file:///ws/n.txt","options":{"ignoreIfExists":true}},` +
				`{"textDocument":{"uri":"file:///ws/a.txt","version":4},"edits":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":3}},"newText":"<b>&"}]},` +
				`{"kind":"rename","oldUri":"file:///ws/a.txt","newUri":"file:///ws/b.txt"},{"kind":"delete","uri":"file:///ws/d","options":{"recursive":true}}]}`,
		},
		{
			"open document, version 0",
			openEdit(snap, edits, all),
			`{"documentChanges":[{"textDocument":{"uri":"file:///C:/ws/a b.txt","version":0},"edits":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":3}},"newText":"<b>&"}]}]}`,
		},
		{
			"open document, version 0 in Neovim",
			openEdit(snap, edits, clientFacts{documentChanges: true, neovim: true}),
			`{"documentChanges":[{"textDocument":{"uri":"file:///C:/ws/a b.txt","version":1},"edits":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":3}},"newText":"<b>&"}]}]}`,
		},
		{
			"client without documentChanges",
			openEdit(snap, edits, clientFacts{}),
			`{"changes":{"file:///C:/ws/a b.txt":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":3}},"newText":"<b>&"}]}}`,
		},
		{
			"new file",
			closedEdit("file:///ws/n.txt", true, edits, all),
			`{"documentChanges":[{"kind":"create","uri":"file:///ws/n.txt","options":{"ignoreIfExists":true}},{"textDocument":{"uri":"file:///ws/n.txt","version":null},"edits":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":3}},"newText":"<b>&"}]}]}`,
		},
		{
			"new file, client without resource operations",
			closedEdit("file:///ws/n.txt", true, edits, clientFacts{documentChanges: true}),
			`{"documentChanges":[{"textDocument":{"uri":"file:///ws/n.txt","version":null},"edits":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":3}},"newText":"<b>&"}]}]}`,
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, err := protocol.Marshal(&row.edit)
			if err != nil || string(got) != row.want {
				t.Errorf("%v\ngot  %s\nwant %s", err, got, row.want)
			}
		})
	}
}
