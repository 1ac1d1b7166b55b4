-- The tables of a journal, version 1. A later version is reached by one upgrade_<version>.sql after another.
-- Text that SQLite refuses (lone surrogates) is stored as a BLOB in its column: UTF-8 with surrogates passed through.
-- A `sum` is a CRC-32 of what the row says; see checksums.py.

CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE
);

-- One row each time a process takes the run. `ended_at` is empty while it goes on, and for ever after a process that died.
CREATE TABLE lives (
    life INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    stop_reason TEXT,
    pid INTEGER NOT NULL,
    host TEXT NOT NULL,
    header BLOB NOT NULL,
    sum INTEGER NOT NULL
);

CREATE INDEX lives_of_run ON lives (run);

-- The last state of each task. `status` is empty until it settles in the latest life that started it; `cut`: its last
-- attempt was ended from outside, which a started attempt is until it says otherwise.
CREATE TABLE tasks (
    task INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    name TEXT NOT NULL,
    place INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    life INTEGER NOT NULL,
    status TEXT,
    cut INTEGER NOT NULL,
    stop_reason TEXT,
    error_kind TEXT,
    team TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    duration REAL NOT NULL DEFAULT 0,
    finished_at TEXT,
    prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    calls INTEGER NOT NULL DEFAULT 0,
    cost REAL,
    sum INTEGER NOT NULL,
    UNIQUE (run, name)
);

CREATE INDEX tasks_of_run ON tasks (run);

-- Apart from the tasks, so that these can be looked through without reading everything.
CREATE TABLE results (
    task INTEGER PRIMARY KEY REFERENCES tasks ON DELETE CASCADE,
    body BLOB NOT NULL,
    sum INTEGER NOT NULL
);

-- Every attempt of every life. `ended_at` is empty where the process died in it.
CREATE TABLE attempts (
    task INTEGER NOT NULL REFERENCES tasks ON DELETE CASCADE,
    life INTEGER NOT NULL,
    number INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    cut INTEGER,
    PRIMARY KEY (task, life, number)
) WITHOUT ROWID;

-- Model calls in the order they were answered. `current`: the next attempt would be answered from it.
CREATE TABLE calls (
    call INTEGER PRIMARY KEY,
    task INTEGER NOT NULL REFERENCES tasks ON DELETE CASCADE,
    life INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    current INTEGER NOT NULL,
    digest TEXT NOT NULL,
    about BLOB NOT NULL,
    body BLOB NOT NULL,
    sum INTEGER NOT NULL
);

CREATE INDEX calls_of_task ON calls (task, current);

-- Effects that must not happen twice: an intent, and its receipt once it has happened.
CREATE TABLE receipts (
    task INTEGER NOT NULL REFERENCES tasks ON DELETE CASCADE,
    key TEXT NOT NULL,
    life INTEGER NOT NULL,
    begun_at TEXT NOT NULL,
    value TEXT,
    sum INTEGER NOT NULL,
    PRIMARY KEY (task, key)
) WITHOUT ROWID;

CREATE TABLE events (
    event INTEGER PRIMARY KEY,
    life INTEGER NOT NULL REFERENCES lives ON DELETE CASCADE,
    at TEXT NOT NULL,
    type TEXT NOT NULL,
    body BLOB NOT NULL,
    sum INTEGER NOT NULL
);

CREATE INDEX events_of_life ON events (life);
