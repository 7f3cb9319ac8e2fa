-- Version 11: calls to judges with prompt and answer, where the configuration has them kept.

CREATE TABLE judge_calls (
    trace_id BLOB NOT NULL,             -- 16 bytes; the key of a session likewise
    call TEXT NOT NULL,                 -- the id that verdicts name
    at_ns INTEGER NOT NULL,             -- when it ended, ns since the epoch
    size INTEGER NOT NULL,              -- bytes of the body
    body BLOB NOT NULL,                 -- JSON, compressed (zlib)
    PRIMARY KEY (trace_id, call)
) WITHOUT ROWID;
CREATE INDEX judge_calls_by_age ON judge_calls (at_ns, size);
