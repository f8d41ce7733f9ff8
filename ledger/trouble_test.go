package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// filled makes a ledger with n commands and closes it.
func filled(t *testing.T, dir string, n int) {
	t.Helper()
	l := openAt(t, dir)
	must(t, l.StartRun(Run{ID: "r"}))
	for i := range n {
		k := key("r", 1, i+1)
		must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-write", Path: "f", Abs: "/nowhere/f", Undo: []byte(strings.Repeat(fmt.Sprint("before ", i, "\n"), 100))}))
		must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied}))
	}
	must(t, l.EndRun("r", "done", "", nil))
	must(t, l.Close())
}

// tamper changes a closed ledger behind its back.
func tamper(t *testing.T, dir, stmt string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(filepath.Join(dir, fileName), ""))
	must(t, err)
	defer db.Close()
	r, err := db.Exec(stmt, args...)
	must(t, err)
	if n, _ := r.RowsAffected(); n == 0 && !strings.HasPrefix(stmt, "PRAGMA") {
		t.Fatalf("%s changed nothing", stmt)
	}
}

func TestDamagedIsKeptAside(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, path string)
	}{
		{"not a database", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte(strings.Repeat("garbage ", 1000)), 0o600))
		}},
		{"cut off", func(t *testing.T, path string) { must(t, os.Truncate(path, 5000)) }},
		{"another program's database", func(t *testing.T, path string) {
			must(t, os.Remove(path))
			tamper(t, filepath.Dir(path), "PRAGMA user_version = 0")
			db, err := sql.Open("sqlite", dsn(path, ""))
			must(t, err)
			_, err = db.Exec("CREATE TABLE theirs (x)")
			must(t, err)
			must(t, db.Close())
		}},
		{"overwritten beginning", func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteAt(make([]byte, 4096), 0)
			must(t, err)
			must(t, f.Close())
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			filled(t, dir, 20)
			path := filepath.Join(dir, fileName)
			for round := range 2 { // the second one needs another name
				c.damage(t, path)
				damagedBytes, err := os.ReadFile(path)
				must(t, err)
				l := openAt(t, dir, func(o *Options) { o.Now = func() time.Time { return time.Unix(1e9, 0) } })
				if l.Aside() == "" {
					t.Fatal("nothing was kept aside")
				}
				kept, err := os.ReadFile(l.Aside())
				must(t, err)
				if string(kept) != string(damagedBytes) {
					t.Error("what was kept is not what was there")
				}
				cmds, err := l.List(ctx, Filter{})
				must(t, err)
				if len(cmds) != 0 {
					t.Error("the new ledger is not empty")
				}
				must(t, l.Intent(ctx, Intent{Key: key("r", 1, 1), Tool: "tf-bash"}))
				verify(t, l)
				must(t, l.Close())
				all, _ := filepath.Glob(path + ".damaged-*")
				if len(all) != round+1 {
					t.Errorf("kept: %v", all)
				}
			}
			if l := openAt(t, dir); l.Aside() != "" {
				t.Error("the new ledger was kept aside as well")
			}
		})
	}
}

// Damage in the middle shows only when it is met; the next opening looks at all
// of the file.
func TestDamageMetInUse(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir, 200)
	path := filepath.Join(dir, fileName)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	fi, err := f.Stat()
	must(t, err)
	for off := int64(1 << 16); off+4096 < fi.Size(); off += 8192 {
		_, err = f.WriteAt([]byte(strings.Repeat("\xff", 4096)), off)
		must(t, err)
	}
	must(t, f.Close())
	l := openAt(t, dir)
	_, err = l.List(ctx, Filter{})
	var fe *FileError
	if !errors.As(err, &fe) || !strings.Contains(err.Error(), "damaged") || fe.Path != path {
		t.Fatalf("got %v", err)
	}
	_ = l.Close()
	l = openAt(t, dir)
	if l.Aside() == "" {
		t.Error("it was not kept aside")
	}
	must(t, l.Intent(ctx, Intent{Key: key("r", 1, 1), Tool: "tf-bash"}))
}

// The ledger of a newer version stays as it is; work goes on beside it, and the
// newer version finds its own again.
func TestNewerVersionIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir, 1)
	tamper(t, dir, "PRAGMA user_version = 999")
	path := filepath.Join(dir, fileName)
	before, err := os.ReadFile(path)
	must(t, err)
	for round := range 2 {
		l := openAt(t, dir)
		if !strings.Contains(l.Notice(), "newer version") || !strings.Contains(l.Notice(), path) || l.Aside() != "" || l.Path() == path {
			t.Fatalf("says %q, works with %s", l.Notice(), l.Path())
		}
		must(t, l.Intent(ctx, Intent{Key: key("r", 1, 1+round), Tool: "tf-bash"}))
		must(t, l.Outcome(Outcome{Key: key("r", 1, 1+round), Status: StatusApplied}))
		cmds, err := l.List(ctx, Filter{})
		must(t, err)
		if len(cmds) != 1+round {
			t.Errorf("round %d: %d commands", round, len(cmds))
		}
		verify(t, l)
		must(t, l.Close())
	}
	after, err := os.ReadFile(path)
	must(t, err)
	if string(before) != string(after) {
		t.Error("the newer ledger was changed")
	}
	tamper(t, dir, fmt.Sprintf("PRAGMA user_version = %d", len(migrations)))
	if l := openAt(t, dir); l.Notice() != "" || l.Path() != path {
		t.Errorf("says %q, works with %s", l.Notice(), l.Path())
	}
}

// Damage that a command meets while the ledger is in use does not stop it: the
// file is kept aside there and then, and the command is in the new one.
func TestDamageMetByACommand(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir, 200)
	path := filepath.Join(dir, fileName)
	l := openAt(t, dir)
	_, err := l.List(ctx, Filter{Last: 1})
	must(t, err)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	fi, err := f.Stat()
	must(t, err)
	for off := int64(4096); off < fi.Size(); off += 4096 {
		_, err = f.WriteAt([]byte(strings.Repeat("\xff", 4096)), off)
		must(t, err)
	}
	must(t, f.Close())
	must(t, l.w.do(ctx, &op{outside: func(tx *txn) error { // no page is remembered
		_, err := tx.conn.ExecContext(bg, "PRAGMA shrink_memory")
		return err
	}}))
	must(t, l.Intent(ctx, Intent{Key: key("r2", 1, 1), Tool: "tf-bash"}))
	if l.Aside() == "" || !strings.Contains(l.Notice(), "damaged") {
		t.Fatalf("says %q", l.Notice())
	}
	if _, err := os.Stat(l.Aside()); err != nil {
		t.Error(err)
	}
	cmds, err := l.List(ctx, Filter{})
	must(t, err)
	if len(cmds) != 1 || cmds[0].Run != "r2" {
		t.Errorf("%+v", cmds)
	}
	verify(t, l)
}

// What is in the file's place and beside it, in each state that a crash, a full
// disk or a hand can leave it in.
func TestWhatIsBesideTheFile(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, path string)
		kept   bool
	}{
		{"a folder in its place", func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.Mkdir(path, 0o755))
			must(t, os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
		}, true},
		{"a link to nothing", func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.Symlink(path+"-elsewhere", path))
		}, true},
		{"a folder for a log", func(t *testing.T, path string) { must(t, os.Mkdir(path+"-wal", 0o700)) }, false},
		{"a folder for shared memory", func(t *testing.T, path string) { must(t, os.Mkdir(path+"-shm", 0o700)) }, false},
		{"no shared memory", func(t *testing.T, path string) { _ = os.Remove(path + "-shm") }, false},
		{"garbage for shared memory", func(t *testing.T, path string) {
			must(t, os.WriteFile(path+"-shm", []byte(strings.Repeat("garbage ", 4096)), 0o600))
		}, false},
		{"garbage for a log", func(t *testing.T, path string) {
			must(t, os.WriteFile(path+"-wal", []byte(strings.Repeat("garbage ", 4096)), 0o600))
		}, false},
		{"the log of another file", func(t *testing.T, path string) {
			other := t.TempDir()
			l := openAt(t, other)
			must(t, l.Intent(ctx, Intent{Key: key("other", 1, 1), Tool: "tf-bash"}))
			wal, err := os.ReadFile(filepath.Join(other, fileName+"-wal"))
			must(t, err)
			must(t, os.WriteFile(path+"-wal", wal[:len(wal)/2], 0o600))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			filled(t, dir, 20)
			c.damage(t, filepath.Join(dir, fileName))
			l := openAt(t, dir)
			if (l.Aside() != "") != c.kept {
				t.Fatalf("kept: %q", l.Aside())
			}
			must(t, l.Intent(ctx, Intent{Key: key("r2", 1, 1), Tool: "tf-bash"}))
			cmds, err := l.List(ctx, Filter{})
			must(t, err)
			if want := map[bool]int{true: 1, false: 21}[c.kept]; len(cmds) != want {
				t.Errorf("%d commands", len(cmds))
			}
			verify(t, l)
		})
	}
}

func TestEmptyFileIsANewLedger(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, fileName), nil, 0o644)) // a crash while it was made
	l := openAt(t, dir)
	if l.Aside() != "" {
		t.Error("kept aside")
	}
	must(t, l.Intent(ctx, Intent{Key: key("r", 1, 1), Tool: "tf-bash"}))
}

func TestFolderIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, nil, 0o600))
	for _, dir := range []string{path, filepath.Join(path, "sub")} {
		_, err := Open(ctx, Options{Dir: dir})
		var fe *FileError
		if !errors.As(err, &fe) || fe.Path != dir || !strings.Contains(err.Error(), EnvStateDir) {
			t.Errorf("got %v", err)
		}
	}
}

// A full disk: intents fail with a clear error, what nobody waits for is kept
// and written when there is room again.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir, func(o *Options) { o.FlushAfter = time.Hour })
	k := key("r", 1, 1)
	must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-bash"}))
	limit := func(pages int) {
		must(t, l.w.do(ctx, &op{outside: func(tx *txn) error {
			_, err := tx.conn.ExecContext(bg, fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			return err
		}}))
	}
	limit(1) // as many as there are
	must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied}))
	big := Intent{Key: key("r", 1, 2), Tool: "tf-write", Abs: "/f", Undo: make([]byte, 100_000)}
	err := l.Intent(ctx, big)
	var fe *FileError
	if !errors.As(err, &fe) || fe.Path != l.Path() || !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), "prune") {
		t.Fatalf("got %v", err)
	}
	limit(1 << 30)
	must(t, l.Intent(ctx, big))
	c, err := l.Get(ctx, k)
	must(t, err)
	if c.Status != StatusApplied {
		t.Errorf("the outcome was lost: %s", c.Status)
	}
	verify(t, l)
}

// While the disk refuses, memory stays bounded: callers get an error.
func TestFullDiskBoundsMemory(t *testing.T) {
	l := openAt(t, t.TempDir())
	must(t, l.StartRun(Run{ID: "r"}))
	must(t, l.w.do(ctx, &op{outside: func(tx *txn) error {
		_, err := tx.conn.ExecContext(bg, "PRAGMA max_page_count = 1")
		return err
	}}))
	big := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	var err error
	for i := range int64(64) {
		if err = l.Event("r", i+1, "text.delta", big); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("got %v", err)
	}
	l.w.mu.Lock()
	size := l.w.bytes
	l.w.mu.Unlock()
	if size > maxBytes+2<<20 {
		t.Errorf("%d bytes are waiting", size)
	}
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("closing says %v", err)
	}
}

// An op that cannot be written does not take the others with it.
func TestOneBadOpAmongOthers(t *testing.T) {
	l := openAt(t, t.TempDir(), func(o *Options) { o.FlushAfter = time.Hour })
	must(t, l.StartRun(Run{ID: "r"}))
	must(t, l.Event("r", 1, "plan", json.RawMessage(`1`)))
	must(t, l.w.put(&op{apply: func(*txn) error { return errors.New("bad") }}))
	must(t, l.Event("r", 2, "plan", json.RawMessage(`2`)))
	must(t, l.Flush(ctx))
	events, err := l.Events(ctx, EventFilter{Run: "r", Seq: true})
	must(t, err)
	if len(events) != 2 {
		t.Errorf("%+v", events)
	}
	verify(t, l)
}

func TestIntentIsCancelled(t *testing.T) {
	l := openAt(t, t.TempDir())
	c, cancel := context.WithCancel(ctx)
	cancel()
	if err := l.Intent(c, Intent{Key: key("r", 1, 1), Tool: "tf-bash"}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	// Another process holds the file: the caller is set free, and what then is
	// recorded is that nothing was done.
	held := make(chan struct{})
	release := make(chan struct{})
	other := openAt(t, l.o.Dir)
	go func() {
		_ = other.w.do(ctx, &op{apply: func(*txn) error { close(held); <-release; return nil }})
	}()
	<-held
	c, cancel = context.WithCancel(ctx)
	result := make(chan error)
	go func() { result <- l.Intent(c, Intent{Key: key("r", 1, 2), Tool: "tf-bash"}) }()
	for begun := false; !begun; { // until the writer has taken it
		l.w.mu.Lock()
		begun = l.w.leading
		l.w.mu.Unlock()
	}
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	close(release)
	must(t, l.Flush(ctx))
	cmds, err := l.List(ctx, Filter{})
	must(t, err)
	for _, cmd := range cmds {
		if cmd.Status != StatusCancelled {
			t.Errorf("%+v", cmd)
		}
	}
}

func TestClosed(t *testing.T) {
	l := openAt(t, t.TempDir())
	must(t, l.Close())
	must(t, l.Close())
	k := key("r", 1, 1)
	_, listErr := l.List(ctx, Filter{})
	for name, err := range map[string]error{
		"Intent": l.Intent(ctx, Intent{Key: k, Tool: "tf-bash"}), "Outcome": l.Outcome(Outcome{Key: k, Status: StatusApplied}),
		"Record": l.Record(Command{Key: k, Status: StatusFailed}), "Event": l.Event("r", 1, "plan", nil), "StartRun": l.StartRun(Run{ID: "r"}),
		"Flush": l.Flush(ctx), "List": listErr, "Injected": l.Injected(k),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s says %v", name, err)
		}
	}
}

// Close writes what waits, and outcomes do not wait longer than they may.
func TestOutcomesAreFlushed(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir, func(o *Options) { o.FlushAfter = time.Hour })
	k := key("r", 1, 1)
	must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-bash"}))
	must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied}))
	must(t, l.Close())
	l = openAt(t, dir, func(o *Options) { o.FlushAfter = time.Millisecond })
	c, err := l.Get(ctx, k)
	must(t, err)
	if c.Status != StatusApplied {
		t.Errorf("%s after Close", c.Status)
	}
	before := commits(l)
	must(t, l.Record(Command{Key: key("r", 1, 2), Status: StatusSkipped}))
	for commits(l) == before { // the timer
		must(t, ctx.Err())
	}
}

func commits(l *Ledger) int64 {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.commits
}

// One durable write per command in a full queue, two in an idle one.
func TestDurableWritesPerCommand(t *testing.T) {
	l := openAt(t, t.TempDir(), func(o *Options) { o.FlushAfter = time.Hour })
	must(t, l.StartRun(Run{ID: "r"}))
	for i := range 50 {
		k := key("r", 1, i+1)
		must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-bash"}))
		must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied}))
		must(t, l.Event("r", int64(i+1), "command.completed", nil))
	}
	if n := commits(l); n != 50 {
		t.Errorf("%d commits for 50 commands", n)
	}
	must(t, l.Flush(ctx))
	if n := commits(l); n != 51 {
		t.Errorf("%d commits after the flush", n)
	}
}

// Many goroutines at once; group commits are fewer than commands.
func TestConcurrentUse(t *testing.T) {
	l := openAt(t, t.TempDir())
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			run := fmt.Sprint("r", g)
			if err := l.StartRun(Run{ID: run}); err != nil {
				t.Error(err)
			}
			for i := range 30 {
				k := key(run, 1, i+1)
				err := errors.Join(l.Intent(ctx, Intent{Key: k, Tool: "tf-write", Path: "f", Abs: "/f", Undo: []byte(fmt.Sprint(g, i))}),
					l.Event(run, int64(i+1), "plan", json.RawMessage(`{}`)),
					l.Outcome(Outcome{Key: k, Status: StatusApplied}), l.Injected(k))
				if err != nil {
					t.Error(err)
				}
				if i%10 == 0 {
					if _, err := l.List(ctx, Filter{Run: run}); err != nil {
						t.Error(err)
					}
				}
			}
			if err := l.EndRun(run, "done", "", nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	cmds, err := l.List(ctx, Filter{Status: []Status{StatusApplied}})
	must(t, err)
	if len(cmds) != 240 {
		t.Errorf("%d commands", len(cmds))
	}
	verify(t, l)
	t.Logf("%d commits for 240 commands of 8 goroutines", commits(l))
}

// The state folder may have any name.
func TestOddFolderNames(t *testing.T) {
	name := "a b#c%41&ü;'=+"
	if filepath.Separator == '/' {
		name += "?x=1"
	}
	dir := filepath.Join(t.TempDir(), name)
	filled(t, dir, 1)
	l := openAt(t, dir)
	cmds, err := l.List(ctx, Filter{})
	must(t, err)
	if len(cmds) != 1 {
		t.Errorf("%d commands", len(cmds))
	}
	if _, err := os.Stat(filepath.Join(dir, fileName)); err != nil {
		t.Error(err)
	}
}
