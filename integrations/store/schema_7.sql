-- Version 7: scores on their way to where verdicts are written back. A row is what a score should be there, and how far
-- that has come; it is put in by the transaction that ends the trace.

CREATE TABLE outbox (
    id TEXT PRIMARY KEY,                -- of the score, derived from what it is of
    trace_id BLOB NOT NULL,             -- 16 bytes
    state TEXT NOT NULL,                -- waiting, sent (taken, not seen yet), stored (seen), dead (given up)
    due_ns INTEGER NOT NULL,            -- not before: to be sent, or to be looked for; ns since the epoch
    queued_ns INTEGER NOT NULL,         -- since when it waits: the order in which scores are sent
    at_ns INTEGER NOT NULL,             -- its timestamp there, which revisions keep
    version INTEGER NOT NULL,           -- counts what it should be: word of an older one changes nothing
    attempts INTEGER NOT NULL,          -- that failed for this score
    missed INTEGER NOT NULL,            -- how often it was looked for in vain
    reason TEXT,                        -- why it was given up, or failed last
    body TEXT,                          -- JSON; NULL: it is to be deleted there
    CHECK (state IN ('waiting', 'sent', 'stored', 'dead'))
);
CREATE INDEX outbox_by_trace ON outbox (trace_id);
CREATE INDEX outbox_waiting ON outbox (due_ns, queued_ns) WHERE state = 'waiting';
CREATE INDEX outbox_age ON outbox (queued_ns) WHERE state = 'waiting';
CREATE INDEX outbox_sent ON outbox (due_ns) WHERE state = 'sent';
CREATE INDEX outbox_dead ON outbox (queued_ns) WHERE state = 'dead';

CREATE TABLE facts (
    name TEXT PRIMARY KEY,              -- what was found out and is worth knowing without asking again
    value TEXT NOT NULL                 -- JSON
) WITHOUT ROWID;
