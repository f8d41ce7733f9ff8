package ledger

// applicationID marks our SQLite files ("TFLG").
const applicationID = 0x54464c47

// migrations bring the schema forward, one version per entry; the number of
// the last one done is PRAGMA user_version. Entries are never changed, only
// added.
//
// commands and runs are projections of the chain in events: they could be
// rebuilt from it. The number n of a run, a session or a command is the number
// of the row that introduced it, so it is never used twice.
var migrations = [...]string{`
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
	seq     INTEGER PRIMARY KEY,
	at      INTEGER NOT NULL,
	run     INTEGER NOT NULL,
	run_seq INTEGER NOT NULL,
	cmd     INTEGER NOT NULL,
	type    TEXT NOT NULL,
	body    TEXT,
	digest  BLOB,
	hash    BLOB NOT NULL
);
CREATE INDEX events_run ON events (run, run_seq) WHERE run_seq > 0;
CREATE INDEX events_cmd ON events (cmd) WHERE cmd > 0;
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
	n           INTEGER PRIMARY KEY,
	run         INTEGER NOT NULL,
	turn        INTEGER NOT NULL,
	channel     TEXT NOT NULL,
	id          INTEGER NOT NULL,
	extra       INTEGER NOT NULL, -- 0, or n for one whose key was taken already
	status      TEXT NOT NULL,
	owner       TEXT NOT NULL,
	last_event  INTEGER NOT NULL,
	intent_at   INTEGER NOT NULL,
	outcome_at  INTEGER,
	injected    INTEGER,
	recovered   INTEGER NOT NULL,
	tool        TEXT NOT NULL,
	path        TEXT NOT NULL,
	dest        TEXT NOT NULL,
	cmd         TEXT NOT NULL,
	abs         TEXT NOT NULL,
	abs_dest    TEXT NOT NULL,
	before_hash TEXT NOT NULL,
	after_hash  TEXT NOT NULL,
	dest_before TEXT NOT NULL,
	need_result INTEGER NOT NULL,
	flow        TEXT NOT NULL,
	via         TEXT NOT NULL,
	risk        TEXT NOT NULL,
	rung        TEXT NOT NULL,
	temp        TEXT NOT NULL,
	undo        BLOB,
	content     BLOB,
	secret      INTEGER NOT NULL,
	content_sum TEXT NOT NULL,
	summary     TEXT NOT NULL,
	args        TEXT,
	code        TEXT NOT NULL,
	error       TEXT NOT NULL,
	bytes       INTEGER NOT NULL,
	added       INTEGER NOT NULL,
	removed     INTEGER NOT NULL,
	stdout      TEXT NOT NULL,
	stderr      TEXT NOT NULL,
	exit_code   INTEGER,
	notes       TEXT
);
CREATE UNIQUE INDEX commands_key ON commands (run, turn, channel, id, extra);
CREATE INDEX commands_open ON commands (owner) WHERE status = 'intent';
CREATE TABLE blobs (
	n      INTEGER PRIMARY KEY,
	hash   BLOB NOT NULL UNIQUE,
	size   INTEGER NOT NULL,
	secret INTEGER NOT NULL,
	data   BLOB
);
`}

// pragmas are run on every connection for writing, in this order.
//
// Measured on ext4 with pages of 4, 8, 16 and 32 KiB: 4 KiB is the fastest for
// commands of 4 KiB and of 100 KiB. Checkpoints are ours (see writer.go).
const pragmas = `
PRAGMA busy_timeout = 5000;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA cache_size = -4096;
PRAGMA temp_store = MEMORY;
PRAGMA secure_delete = ON;
`
