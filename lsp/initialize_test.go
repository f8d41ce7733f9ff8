package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"thinkflow/internal/fakeeditor"
)

// TestCapabilities: what real editors sent is accepted, and read rightly.
func TestCapabilities(t *testing.T) {
	nvim := clientFacts{encoding: utf16Units, applyEdit: true, documentChanges: true, neovim: true, create: true, rename: true, delete: true, progress: true}
	nvim10 := nvim
	nvim10.showDocument, nvim10.configuration = true, true
	nvim12 := nvim10
	nvim12.codeLens, nvim12.refreshLens = true, true
	rows := map[string]clientFacts{
		"vscode":    {encoding: utf16Units, applyEdit: true, documentChanges: true, create: true, rename: true, delete: true, progress: true, showDocument: true, configuration: true, codeLens: true, refreshLens: true},
		"nvim-0.7":  nvim,
		"nvim-0.10": nvim10,
		"nvim-0.12": nvim12,
		"eglot-1.9": {encoding: utf16Units, applyEdit: true, documentChanges: true, configuration: true},
		"eglot-30":  {encoding: utf16Units, applyEdit: true, documentChanges: true, configuration: true, progress: true, showDocument: true},
		"helix":     {encoding: utf16Units, applyEdit: true, documentChanges: true, create: true, rename: true, delete: true, progress: true, configuration: true},
		"minimal":   {encoding: utf16Units, applyEdit: true},
	}
	for name, want := range rows {
		t.Run(name, func(t *testing.T) {
			p, err := fakeeditor.ProfileNamed(name)
			if err != nil {
				t.Fatal(err)
			}
			params, err := p.InitializeParams("../testdata/capabilities", "file:///ws")
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			var got protocol.InitializeParams
			if err := protocol.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			want.name, want.version = name, "fake"
			if f := factsOf(&got, initOptions{}); f != want {
				t.Errorf("got  %+v\nwant %+v", f, want)
			}
		})
	}
}

// TestRecordedParams: whole recorded params decode, Helix' rootPath included.
func TestRecordedParams(t *testing.T) {
	rows := []struct{ file, name, root string }{
		{"caps-vscode.json", "code-server", "/ws"},
		{"caps-helix.json", "helix", "/ws"},
	}
	for _, row := range rows {
		raw, err := os.ReadFile(filepath.Join("../testdata/capabilities", row.file))
		if err != nil {
			t.Fatal(err)
		}
		var p protocol.InitializeParams
		if err := protocol.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		folders := initialFolders(&p, "/fallback")
		if p.ClientInfo.Name != row.name || len(folders) != 1 || folders[0].root.Dir != row.root {
			t.Errorf("%s: %q, %+v", row.file, p.ClientInfo.Name, folders)
		}
	}
}

func TestInitialFolders(t *testing.T) {
	rows := []struct{ name, params, want string }{
		{"nothing", `{}`, "[:/fallback]"},
		{"rootUri", `{"rootUri":"file:///a%20b"}`, "[:/a b]"},
		{"rootPath", `{"rootUri":null,"rootPath":"/p","workspaceFolders":[]}`, "[:/p]"},
		{"folders", `{"rootUri":"file:///x","workspaceFolders":[{"uri":"file:///api","name":"api"},{"uri":"file:///web/","name":"web"}]}`, "[api:/api web:/web]"},
		{"null folders", `{"rootUri":"file:///x","workspaceFolders":null}`, "[:/x]"},
		{"folder of another scheme", `{"rootUri":null,"workspaceFolders":[{"uri":"vscode-vfs://github/a","name":"a"}]}`, "[:/fallback]"},
		{"relative rootPath", `{"rootPath":"x"}`, "[:/fallback]"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var p protocol.InitializeParams
			if err := protocol.Unmarshal([]byte(row.params), &p); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range initialFolders(&p, "/fallback") {
				got = append(got, f.root.Name+":"+f.root.Dir)
			}
			if fmt.Sprint(got) != row.want {
				t.Errorf("got %v, want %s", got, row.want)
			}
		})
	}
}

func TestWireError(t *testing.T) {
	coded := jsonrpc2.NewError(-32099, "own")
	rows := []struct {
		name string
		in   error
		code jsonrpc2.Code
	}{
		{"cancelled", context.Canceled, -32800},
		{"wrapped deadline", fmt.Errorf("reading: %w", context.DeadlineExceeded), -32800},
		{"coded", fmt.Errorf("x: %w", coded), -32099},
		{"parse", fmt.Errorf("%w: bad", jsonrpc2.ErrParse), -32602},
		{"plain", errors.New("x"), -32603},
	}
	for _, row := range rows {
		var got *jsonrpc2.Error
		if !errors.As(wireError(row.in), &got) || got.Code != row.code {
			t.Errorf("%s: %v, want code %d", row.name, got, row.code)
		}
	}
	if wireError(nil) != nil {
		t.Error("no error is an error")
	}
}

// TestOrdinaryCancel: a cancelled ordinary request is answered with -32800, for
// both kinds of ids.
func TestOrdinaryCancel(t *testing.T) {
	s := newServer(Options{})
	s.state.set(stateInitialized)
	started := make(chan struct{})
	h := s.guard(s.cancelling(func(ctx context.Context, _ *jsonrpc2.Request) (any, error) {
		release(ctx)
		started <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	toServer, fromClient := io.Pipe()
	fromServer, toClient := io.Pipe()
	conn := jsonrpc2.NewConn(jsonrpc2.NewStream(newFrames(toServer, toClient, s.log, func(error) {})))
	s.connect(t.Context(), conn)
	conn.Go(t.Context(), h)
	client := fakeeditor.NewConn(fromServer, fromClient, func(*fakeeditor.Message) {})
	for _, id := range []string{"7", `"seven"`} {
		call, err := client.Go(id, "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		<-started
		if err := client.Notify("$/cancelRequest", json.RawMessage(`{"id":`+id+`}`)); err != nil {
			t.Fatal(err)
		}
		var coded *fakeeditor.Error
		if err := call.Wait(nil); !errors.As(err, &coded) || coded.Code != -32800 {
			t.Errorf("id %s: %v", id, err)
		}
	}
	_ = client.Close()
}
