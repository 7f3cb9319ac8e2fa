-- Version 8: traces that were read out of Langfuse, so that each is taken once; and what verdicts were held against.

CREATE TABLE pulled (
    trace_id TEXT PRIMARY KEY,          -- as Langfuse writes it
    last_ns INTEGER NOT NULL,           -- when the latest of its rows that were seen began, ns since the epoch
    reason TEXT,                        -- why it ended unread (sampled_out, excluded, …); NULL: it was taken
    spans BLOB NOT NULL                 -- ids of the rows that were taken, 8 bytes each
) WITHOUT ROWID;
CREATE INDEX pulled_by_age ON pulled (last_ns);

CREATE TABLE referred (
    key BLOB NOT NULL,                  -- 16 bytes, derived from where a reference was looked for and under what
    trace_id BLOB NOT NULL,             -- 16 bytes
    closed_ns INTEGER NOT NULL,         -- when it was judged
    digest BLOB,                        -- 16 bytes, of the reference that was found there; NULL: there was none
    PRIMARY KEY (key, trace_id)
) WITHOUT ROWID;
CREATE INDEX referred_by_trace ON referred (trace_id);
CREATE INDEX referred_by_age ON referred (closed_ns);
