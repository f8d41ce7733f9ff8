package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"thinkflow/agent"
	"thinkflow/internal/serve"
	"thinkflow/internal/term"
	"thinkflow/workspace"
)

type serveCmd struct {
	settings
	Dir       string   `short:"C" placeholder:"DIR" help:"Folder to work in (the current one)."`
	Listen    string   `default:"127.0.0.1:0" placeholder:"ADDR" help:"Address to listen on; port 0 takes a free one."`
	TokenFile string   `placeholder:"FILE" help:"File with the token for programs, mode 0600; made if it is not there. Default: a new token in the state folder."`
	Remote    bool     `help:"Allow an address that is not loopback; needs --token-file. Put TLS in front of it."`
	Host      []string `placeholder:"NAME:PORT" help:"Further host names that requests may come for, such as those of a proxy."`
	Allow     []string `placeholder:"CLASS" help:"What may be done without asking: bash, delete, secrets, protected."`
}

func (c *serveCmd) Run(a *app) error {
	flags := map[string]string{}
	if len(c.Allow) > 0 {
		flags["allow"] = strings.Join(c.Allow, ",")
	}
	loaded, err := a.load(&c.settings, flags, nil)
	if err != nil {
		return err
	}
	if err := needModel(loaded); err != nil {
		return err
	}
	dir, err := folder(c.Dir)
	if err != nil {
		return err
	}
	if err := c.checkAddress(); err != nil {
		return err
	}
	state, err := stateDir(&loaded.Config, dir)
	if err != nil {
		return err
	}
	token, file, err := c.token(state)
	if err != nil {
		return err
	}
	_ = a.redact.Add(token)
	log, closeLog, err := logger(&loaded.Config, a.stderr, a.redact)
	if err != nil {
		return err
	}
	defer closeLog()
	late := &lateApprover{}
	engine, _, err := assemble(parts{
		cfg: loaded.Config, roots: []workspace.Root{{Dir: dir}}, file: loaded.File, approver: late, asks: "http", log: log, redact: a.redact,
		notice: func(s string) { fmt.Fprintln(a.stderr, "thinkflow: "+term.Visible(s)) },
	})
	if err != nil {
		return err
	}
	told, wait := a.notifying(&loaded.Config, log, false, func(agent.Event) {})
	defer wait()
	server := serve.New(serve.Options{Engine: engine, Token: token, Hosts: c.Host, Remote: c.Remote, Version: shortVersion(), Log: log, Notify: told})
	late.Approver = server
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", c.Listen, err)
	}
	url := "http://" + listener.Addr().String()
	fmt.Fprintf(a.stdout, "%s works in %s\n\n", url, term.VisibleName(dir))
	fmt.Fprintf(a.stdout, "  page      %s/?ticket=%s   (opens once, within two minutes)\n", url, server.Ticket())
	fmt.Fprintf(a.stdout, "  programs  Authorization: Bearer, token in %s\n  routes    %s/openapi.json\n\nCtrl-C ends it; runs that wait for an answer are kept.\n", term.VisibleName(file), url)
	h := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return a.ctx }}
	stop := context.AfterFunc(a.ctx, func() { _ = h.Close() })
	defer stop()
	err = h.Serve(listener)
	server.Close()
	if cerr := engine.Close(); cerr != nil {
		log.Error("the ledger was not closed well", "error", cerr)
	}
	if c.TokenFile == "" {
		_ = os.Remove(file)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// isWindows: modes say nothing there.
const isWindows = runtime.GOOS == "windows"

// lateApprover is an approver that is known only after the engine stands.
type lateApprover struct{ agent.Approver }

// checkAddress keeps the server on loopback unless the user says otherwise.
func (c *serveCmd) checkAddress() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return usagef("--listen %s: %w", c.Listen, err)
	}
	ip := net.ParseIP(host)
	switch {
	case host == "localhost" || ip != nil && ip.IsLoopback():
		return nil
	case !c.Remote:
		return usagef("--listen %s is not a loopback address, so that others could reach it; if that is meant, give --remote and --token-file", c.Listen)
	case c.TokenFile == "":
		return usagef("--remote needs --token-file: a token that you keep")
	}
	return nil
}

// token reads the token, or makes one and writes it where only its owner can
// read it.
func (c *serveCmd) token(state string) (token, file string, err error) {
	file = c.TokenFile
	if file != "" {
		info, err := os.Stat(file)
		if err == nil {
			if info.Mode().Perm()&0o077 != 0 && !isWindows {
				return "", "", usagef("--token-file %s can be read by others; run: chmod 600 %s", file, file)
			}
			data, err := os.ReadFile(file)
			token = strings.TrimSpace(string(data))
			if err == nil && len(token) < 32 {
				err = usagef("--token-file %s: the token has fewer than 32 characters", file)
			}
			return token, file, err
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", "", err
		}
	} else {
		if err := os.MkdirAll(state, 0o700); err != nil {
			return "", "", err
		}
		file = filepath.Join(state, fmt.Sprintf("serve-%d.token", os.Getpid()))
		_ = os.Remove(file) // of an earlier process with this number
	}
	token = serve.NewToken()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", "", err
	}
	_, err = f.WriteString(token + "\n")
	return token, file, errors.Join(err, f.Close())
}
