-- Version 1: who is there, who may do what only one may do, and what all of them share.

CREATE TABLE monitors (
    monitor TEXT PRIMARY KEY,               -- name of a monitor, of its own choice at its first start
    version TEXT NOT NULL,                  -- of the program
    host TEXT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    left_at TIMESTAMPTZ                     -- it ended in order; NULL while it runs, or when it was killed
);

CREATE TABLE leases (
    name TEXT PRIMARY KEY,                  -- what only one may do
    holder TEXT NOT NULL,                   -- name of a monitor
    token BIGINT NOT NULL,                  -- fencing: grows with each change of the holder, and never falls
    taken_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    expires_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE states (
    name TEXT PRIMARY KEY,                  -- what the holder of a lease hands to the next
    lease TEXT NOT NULL,
    token BIGINT NOT NULL,                  -- under which it was written; one with a lower token is refused
    body BYTEA NOT NULL,
    written_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE claims (
    kind TEXT NOT NULL,                     -- of effects outside this database
    id TEXT NOT NULL,
    monitor TEXT NOT NULL,
    token BIGINT NOT NULL,
    claimed_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    done_at TIMESTAMPTZ,                    -- NULL: begun, and not known to be over
    PRIMARY KEY (kind, id)
);
CREATE INDEX claims_by_age ON claims (claimed_at);

CREATE TABLE windows (
    monitor TEXT NOT NULL,
    name TEXT NOT NULL,                     -- JSON of service, environment and rubric
    body BYTEA NOT NULL,                    -- sums of the monitor's window
    written_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (monitor, name)
);
CREATE INDEX windows_by_age ON windows (written_at);

CREATE TABLE judge_spend (
    hour BIGINT NOT NULL,                   -- seconds since the epoch at which it begins
    monitor TEXT NOT NULL,
    granted DOUBLE PRECISION NOT NULL,      -- US dollars that the monitor may spend in this hour, those spent included
    spent DOUBLE PRECISION NOT NULL,
    demand DOUBLE PRECISION NOT NULL,       -- US dollars a second that judging everything would take
    written_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (hour, monitor)
);

CREATE TABLE answers (
    key TEXT PRIMARY KEY,                   -- hash of judge and question
    body TEXT NOT NULL,                     -- JSON
    written_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX answers_by_age ON answers (written_at);

CREATE TABLE results (
    trace_id TEXT NOT NULL,                 -- hex; of a session its key
    revision INTEGER NOT NULL,
    monitor TEXT NOT NULL,
    service TEXT,
    ended_at TIMESTAMPTZ NOT NULL,
    outcome JSONB NOT NULL,
    verdicts JSONB NOT NULL,                -- those that are new or changed
    PRIMARY KEY (trace_id, monitor, revision)
);
CREATE INDEX results_by_age ON results (ended_at);
