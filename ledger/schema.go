package ledger

// applicationID marks our SQLite files ("TFLG").
const applicationID = 0x54464c47

// migrations bring the schema forward, one version per entry; the number of
// the last one done is PRAGMA user_version. Entries are never changed, only
// added.
//
// commands and runs are projections of the chain in events and could be rebuilt
// from it. The number n of a run, a session or a command is the number of the
// row that introduced it, so it is never used twice. A command keeps here only
// what is searched for; its other fields are read from the bodies of the rows
// intent_row (what was announced), detail_row (the last outcome that says what
// the effect was) and status_row (what set the status). The rows about one
// command form a list, newest first: last_row, then events.prev.
//
// Every page that a commit touches is written to the log and synced, so there
// is no index that can be done without: open intents are found by a mark in
// meta (see settle.go), and the number of a text in blobs begins as the first
// eight bytes of its hash (see blob.go).
var migrations = [...]string{`
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
	seq     INTEGER PRIMARY KEY,
	at      INTEGER NOT NULL,
	run     INTEGER NOT NULL,
	run_seq INTEGER NOT NULL,
	cmd     INTEGER NOT NULL,
	prev    INTEGER NOT NULL,
	type    TEXT NOT NULL,
	body    TEXT,
	digest  BLOB,
	hash    BLOB NOT NULL
);
CREATE INDEX events_run ON events (run, run_seq) WHERE run_seq > 0;
CREATE TABLE sessions (
	n       INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,
	title   TEXT NOT NULL,
	started INTEGER NOT NULL
);
CREATE TABLE runs (
	n       INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,
	session TEXT NOT NULL,
	task    TEXT NOT NULL,
	model   TEXT NOT NULL,
	dir     TEXT NOT NULL,
	owner   TEXT NOT NULL,
	started INTEGER NOT NULL,
	ended   INTEGER,
	state   TEXT NOT NULL,
	reason  TEXT NOT NULL,
	usage   TEXT
);
CREATE INDEX runs_open ON runs (owner) WHERE ended IS NULL;
CREATE TABLE turns (
	run     INTEGER NOT NULL,
	turn    INTEGER NOT NULL,
	started INTEGER NOT NULL,
	ended   INTEGER,
	finish  TEXT NOT NULL,
	usage   TEXT,
	PRIMARY KEY (run, turn)
) WITHOUT ROWID;
CREATE TABLE commands (
	n          INTEGER PRIMARY KEY,
	run        INTEGER NOT NULL,
	turn       INTEGER NOT NULL,
	channel    TEXT NOT NULL,
	id         INTEGER NOT NULL,
	extra      INTEGER NOT NULL, -- 0, or n for one whose key was taken already
	status     TEXT NOT NULL,
	injected   INTEGER,
	intent_row INTEGER NOT NULL,
	detail_row INTEGER NOT NULL, -- 0 = no outcome yet
	status_row INTEGER NOT NULL,
	last_row   INTEGER NOT NULL,
	owner      TEXT NOT NULL,
	tool       TEXT NOT NULL,
	path       TEXT NOT NULL,
	dest       TEXT NOT NULL,
	secret     INTEGER NOT NULL,
	undo       INTEGER, -- numbers in blobs
	content    INTEGER
);
CREATE UNIQUE INDEX commands_key ON commands (run, turn, channel, id, extra);
CREATE TABLE loose ( -- newest rows about commands that are not there yet
	run     INTEGER NOT NULL,
	turn    INTEGER NOT NULL,
	channel TEXT NOT NULL,
	id      INTEGER NOT NULL,
	seq     INTEGER NOT NULL,
	PRIMARY KEY (run, turn, channel, id)
) WITHOUT ROWID;
CREATE TABLE blobs (
	n      INTEGER PRIMARY KEY,
	hash   BLOB NOT NULL,
	size   INTEGER NOT NULL,
	secret INTEGER NOT NULL,
	data   BLOB -- NULL when purged
);
`, `
CREATE TABLE checkpoints ( -- part 0 is the head, the others are deltas
	run  INTEGER NOT NULL,
	part INTEGER NOT NULL,
	seq  INTEGER NOT NULL, -- row of the chain that holds its digest
	data BLOB NOT NULL,
	PRIMARY KEY (run, part)
);
`}

// pragmas are run on every connection for writing, in this order.
//
// Measured on ext4 with pages of 4, 8, 16 and 32 KiB: 4 KiB is the fastest for
// commands of 4 KiB and of 100 KiB; a larger cache only makes the end of each
// transaction slower. Checkpoints are ours (see writer.go). fullfsync matters on
// macOS, where fsync alone does not reach the disk.
const pragmas = `
PRAGMA busy_timeout = 5000;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA cache_size = -1024;
PRAGMA fullfsync = ON;
PRAGMA checkpoint_fullfsync = ON;
PRAGMA temp_store = MEMORY;
PRAGMA secure_delete = ON;
`
