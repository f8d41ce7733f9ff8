package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// fileName is the ledger's file inside the state folder.
const fileName = "ledger.db"

// bg is used where a statement must not be interrupted half-way.
var bg = context.Background()

// dsn builds SQLite's URI for a path, which may hold any character.
func dsn(path, query string) string {
	p := filepath.ToSlash(path)
	if runtime.GOOS == "windows" && !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	u := url.URL{Scheme: "file", Path: p, RawQuery: query}
	return u.String()
}

// makeDir creates the state folder, only for its owner.
func makeDir(dir string) error {
	if fi, err := os.Stat(dir); err == nil {
		if !fi.IsDir() {
			return &FileError{Path: dir, What: "is not a folder", Do: "move it away, or set " + EnvStateDir, Err: syscall.ENOTDIR}
		}
		if runtime.GOOS != "windows" && fi.Mode().Perm()&0o077 != 0 {
			if err := os.Chmod(dir, 0o700); err != nil {
				return dirError(dir, err)
			}
		}
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return dirError(dir, err)
	}
	// The entry of the new folder must be on disk as well, or the ledger in it
	// could be lost with the power.
	syncDir(filepath.Dir(dir))
	return nil
}

func dirError(dir string, err error) error {
	return &FileError{Path: dir, What: "the state folder cannot be created or written", Do: "check its permissions and free space, or set " + EnvStateDir + " to another folder", Err: err}
}

// syncDir makes the entries of a folder durable where the system can.
func syncDir(dir string) {
	if f, err := os.Open(dir); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}

// createFile makes the empty file with mode 0600, so that SQLite (which copies
// its mode to -wal and -shm) never has it readable for others. It must not
// open an existing file: closing that would drop this process's POSIX locks.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		if fi, err := os.Stat(path); errors.Is(err, os.ErrNotExist) || err == nil && !fi.Mode().IsRegular() {
			return errNoFile // a link to nothing, too
		}
		if fi, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && fi.Mode().Perm()&0o077 != 0 {
			return os.Chmod(path, 0o600)
		}
		return nil
	}
	if err != nil {
		return dirError(filepath.Dir(path), err)
	}
	return f.Close()
}

// openWriter opens the one connection for writing and brings the schema
// forward. The caller holds the opening lock.
func openWriter(ctx context.Context, path, workspace string, now time.Time) (*sql.DB, *sql.Conn, error) {
	if err := createFile(path); err != nil {
		return nil, nil, err
	}
	// fdatasync is as durable as fsync and leaves out the time stamps; where
	// there is none this changes nothing.
	_, _ = sqlite.Fdatasync(true)
	db, err := sql.Open("sqlite", dsn(path, ""))
	if err != nil {
		return nil, nil, fmt.Errorf("ledger %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err == nil {
		if err = prepareFile(ctx, conn, workspace, now); err == nil {
			return db, conn, nil
		}
		_ = conn.Close()
	}
	_ = db.Close()
	return nil, nil, storeError(path, "open", err)
}

// errNewer, errForeign and errNoFile are reasons not to use a file as it is.
var (
	errNewer   = errors.New("written by a newer version")
	errForeign = errors.New("not a ledger of ThinkFlow")
	errNoFile  = errors.New("not a file")
)

func prepareFile(ctx context.Context, conn *sql.Conn, workspace string, now time.Time) error {
	if _, err := conn.ExecContext(ctx, pragmas); err != nil {
		return err
	}
	var version, appID int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version == len(migrations) {
		return checkID(ctx, conn, &appID)
	}
	if version > len(migrations) {
		return errNewer
	}
	if version > 0 {
		if err := checkID(ctx, conn, &appID); err != nil {
			return err
		}
	} else {
		var tables int
		if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
			return err
		}
		if tables > 0 {
			return errForeign
		}
		// Changing the mode is possible only outside a transaction; it stays
		// in the file.
		var mode string
		if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
			return err
		}
	}
	return migrate(ctx, conn, version, workspace, now)
}

func checkID(ctx context.Context, conn *sql.Conn, appID *int) error {
	if err := conn.QueryRowContext(ctx, "PRAGMA application_id").Scan(appID); err != nil {
		return err
	}
	if *appID != applicationID {
		return errForeign
	}
	return nil
}

// migrate runs the missing migrations in one transaction.
func migrate(ctx context.Context, conn *sql.Conn, from int, workspace string, now time.Time) (err error) {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = conn.ExecContext(bg, "ROLLBACK")
		}
	}()
	var b strings.Builder
	for _, m := range migrations[from:] {
		b.WriteString(m)
	}
	if from == 0 {
		fmt.Fprintf(&b, "PRAGMA application_id = %d;\n", applicationID)
	}
	fmt.Fprintf(&b, "PRAGMA user_version = %d;\n", len(migrations))
	if _, err := conn.ExecContext(ctx, b.String()); err != nil {
		return err
	}
	if from == 0 {
		id := make([]byte, 16)
		_, _ = rand.Read(id)
		_, err := conn.ExecContext(ctx, "INSERT INTO meta VALUES ('id', ?), ('workspace', ?), ('created', ?)",
			hex.EncodeToString(id), workspace, strconv.FormatInt(micros(now), 10))
		if err != nil {
			return err
		}
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

// writable finds out whether the file can be written, for SQLite opens one that
// cannot without a word. From here on, waiting for other processes is the
// writer's affair, who wants to know of them soon.
func writable(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "DELETE FROM meta WHERE key = ''") // there is none
	if err != nil && sqliteCode(err) != sqlite3.SQLITE_BUSY {
		return err
	}
	_, err = conn.ExecContext(ctx, "PRAGMA busy_timeout = 100")
	return err
}

// openReader opens a small pool for reading.
func openReader(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(path, "_busy_timeout=5000&_query_only=1"))
	if err != nil {
		return nil, storeError(path, "open for reading", err)
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(2)
	return db, nil
}

// damaged tells whether an error means that the file cannot be trusted.
func damaged(err error) bool {
	var ec errCheck
	if errors.Is(err, errForeign) || errors.Is(err, errNoFile) || errors.As(err, &ec) {
		return true
	}
	switch sqliteCode(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	}
	return false
}

// environmental tells whether an error comes from the disk or from another
// process rather than from what was to be written: trying again later may help.
func environmental(err error) bool {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM,
		sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOLFS:
		return true
	}
	return false
}

// sqliteCode is SQLite's primary result code of an error; 0 if it has none.
func sqliteCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// storeError words an error of SQLite for people: which file, what happened,
// what to do.
func storeError(path, op string, err error) error {
	if err == nil {
		return nil
	}
	var fe *FileError
	if errors.As(err, &fe) {
		return err
	}
	e := &FileError{Path: path, What: "cannot " + op, Err: err}
	elsewhere := "or set " + EnvStateDir + " to another folder"
	switch {
	case errors.Is(err, errNewer):
		e.What, e.Do = "was written by a newer version of ThinkFlow", "update ThinkFlow, "+elsewhere
	case errors.Is(err, errForeign):
		e.What, e.Do = "is not a ledger of ThinkFlow", "move it away, "+elsewhere
	default:
		switch sqliteCode(err) {
		case sqlite3.SQLITE_FULL:
			e.What, e.Do = "no space left on its disk", "free some space (thinkflow ledger prune removes old runs), "+elsewhere
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
			e.What, e.Do = "cannot be written", "check the permissions of the file and its folder, "+elsewhere
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			e.What, e.Do = "another process has been holding it for more than 5 s", "wait for it or end it, then try again"
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			e.What, e.Do = "is damaged", "start ThinkFlow again: it keeps the damaged file aside and begins a new one"
		case sqlite3.SQLITE_IOERR:
			e.What, e.Do = "the disk reports an error", "check the disk, "+elsewhere
		}
	}
	return e
}

// setAside renames a damaged ledger and what belongs to it; nothing is deleted.
func setAside(path string, now time.Time) (string, error) {
	aside := freeName(path+".damaged-", now)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		err := os.Rename(path+suffix, aside+suffix)
		if err != nil && !(suffix != "" && errors.Is(err, os.ErrNotExist)) {
			return "", &FileError{Path: path + suffix, What: "is damaged and cannot be kept aside", Do: "end other ThinkFlow processes that use it, or move it away", Err: err}
		}
	}
	syncDir(filepath.Dir(path))
	return aside, nil
}

// freeName is a name that begins so and is not taken.
func freeName(prefix string, now time.Time) string {
	base := prefix + now.UTC().Format("20060102T150405Z")
	for i, name := 2, base; ; i++ {
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			return name
		}
		name = fmt.Sprintf("%s-%d", base, i)
	}
}

// clearBeside renames what is no file in the places of SQLite's own files: the
// ledger can do without them.
func clearBeside(path string, now time.Time) (aside string) {
	for _, suffix := range []string{"-wal", "-shm"} {
		if fi, err := os.Lstat(path + suffix); err != nil || fi.Mode().IsRegular() {
			continue
		}
		if name := freeName(path+suffix+".damaged-", now); os.Rename(path+suffix, name) == nil {
			aside = name
		}
	}
	return aside
}

func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// suspectSuffix names a mark beside a file in which damage was met while it was
// in use: the next opening checks all of it, which takes long for large ones.
const suspectSuffix = ".suspect"

func suspected(path string) bool {
	_, err := os.Lstat(path + suspectSuffix)
	return err == nil
}

func markSuspect(path string) {
	if f, err := os.OpenFile(path+suspectSuffix, os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_ = f.Close()
	}
}

// errCheck is what an integrity check found.
type errCheck string

func (e errCheck) Error() string { return "integrity check: " + string(e) }

// check runs SQLite's own integrity check.
func check(ctx context.Context, conn *sql.Conn) error {
	var found string
	if err := conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return errCheck(found)
	}
	return nil
}
