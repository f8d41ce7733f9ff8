package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Last is the reference to the last run, or to the last command.
const Last = "last"

// maxMatches bounds the matches that an AmbiguousError names.
const maxMatches = 5

// runRef finds a run by id, unique prefix or "last".
func (l *Ledger) runRef(ctx context.Context, db *sql.DB, ref string) (n int64, id string, err error) {
	if ref == Last {
		err = db.QueryRowContext(ctx, "SELECT n, id FROM runs ORDER BY n DESC LIMIT 1").Scan(&n, &id)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, "", fmt.Errorf("the ledger has no run yet: %w", ErrNotFound)
		}
		return n, id, l.failed(ctx, err)
	}
	// An id that is a prefix of another one comes first.
	rows, err := db.QueryContext(ctx, "SELECT n, id FROM runs WHERE id >= ? AND id < ? ORDER BY id LIMIT ?", ref, ref+"\U0010ffff", maxMatches+1)
	if err != nil {
		return 0, "", l.failed(ctx, err)
	}
	defer rows.Close()
	var matches []string
	for rows.Next() {
		var rn int64
		var rid string
		if err := rows.Scan(&rn, &rid); err != nil {
			return 0, "", l.failed(ctx, err)
		}
		if rid == ref {
			return rn, rid, nil
		}
		matches = append(matches, rid)
		n, id = rn, rid
	}
	if err := rows.Err(); err != nil {
		return 0, "", l.failed(ctx, err)
	}
	switch {
	case ref == "" || len(matches) == 0:
		return 0, "", fmt.Errorf("run %q: %w (list them with: thinkflow ledger runs)", ref, ErrNotFound)
	case len(matches) > 1:
		return 0, "", ambiguous(ref, matches)
	}
	return n, id, nil
}

func ambiguous(ref string, matches []string) error {
	if len(matches) > maxMatches {
		matches = append(matches[:maxMatches:maxMatches], "…")
	}
	return &AmbiguousError{Ref: ref, Matches: matches}
}

// commandRef finds a command by one of the forms that Show describes.
func (l *Ledger) commandRef(ctx context.Context, db *sql.DB, ref string) (int64, error) {
	missing := fmt.Errorf("command %q: %w (list them with: thinkflow ledger list)", ref, ErrNotFound)
	var n int64
	if ref == Last {
		err := db.QueryRowContext(ctx, "SELECT n FROM commands ORDER BY n DESC LIMIT 1").Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, fmt.Errorf("the ledger has no command yet: %w", ErrNotFound)
		}
		return n, l.failed(ctx, err)
	}
	if num, err := strconv.ParseInt(strings.TrimPrefix(ref, "#"), 10, 64); err == nil {
		err := db.QueryRowContext(ctx, "SELECT n FROM commands WHERE n = ?", num).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, missing
		}
		return n, l.failed(ctx, err)
	}
	parts := strings.Split(ref, "/")
	run, _, err := l.runRef(ctx, db, parts[0])
	if err != nil {
		return 0, err
	}
	var w conditions
	w.add("c.run = ?", run)
	number := func(column, s string) bool {
		v, err := strconv.Atoi(s)
		w.add("c."+column+" = ?", v)
		return err == nil
	}
	ok := true
	switch len(parts) {
	case 1:
	case 2: // run/id
		ok = number("id", parts[1])
	case 3: // run/turn/id
		ok = number("turn", parts[1]) && number("id", parts[2])
	case 4: // run/turn/channel/id
		w.add("c.channel = ? AND c.extra = 0", parts[2])
		ok = number("turn", parts[1]) && number("id", parts[3])
	default:
		ok = false
	}
	if !ok {
		return 0, missing
	}
	return l.oneCommand(ctx, db, ref, &w, missing)
}

func (l *Ledger) oneCommand(ctx context.Context, db *sql.DB, ref string, w *conditions, missing error) (n int64, err error) {
	rows, err := db.QueryContext(ctx, "SELECT c.n, r.id, c.turn, c.channel, c.id FROM commands c JOIN runs r ON r.n = c.run"+
		w.String()+" ORDER BY c.n LIMIT ?", append(w.args, maxMatches+1)...)
	if err != nil {
		return 0, l.failed(ctx, err)
	}
	defer rows.Close()
	var matches []string
	for rows.Next() {
		var k Key
		if err := rows.Scan(&n, &k.Run, &k.Turn, &k.Channel, &k.ID); err != nil {
			return 0, l.failed(ctx, err)
		}
		matches = append(matches, k.String())
	}
	switch {
	case rows.Err() != nil:
		return 0, l.failed(ctx, rows.Err())
	case len(matches) == 0:
		return 0, missing
	case len(matches) > 1:
		return 0, ambiguous(ref, matches)
	}
	return n, nil
}
