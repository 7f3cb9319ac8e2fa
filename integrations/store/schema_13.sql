-- Version 13: contents of traces that ended, kept after their chunks are let go of.

CREATE TABLE contents (
    trace_id BLOB PRIMARY KEY,
    closed_ns INTEGER NOT NULL,         -- of its trace, ns since the epoch
    revision INTEGER NOT NULL,          -- of its trace, when this was asked for
    waits INTEGER NOT NULL,             -- whether the chunks of that revision are still to be read
    size INTEGER NOT NULL DEFAULT 0,    -- bytes of the body
    body BLOB                           -- spans, redacted and packed; NULL before they are written
);
CREATE INDEX contents_by_age ON contents (closed_ns, size);
CREATE INDEX contents_waiting ON contents (trace_id, revision) WHERE waits;
