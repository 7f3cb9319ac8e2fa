-- The working state of one monitor: spans of traces that are not finished, and what came of those that are.
-- Columns before payloads and JSON, so that a scan need not read them.

CREATE TABLE chunks (
    seq INTEGER PRIMARY KEY,            -- order of arrival
    trace_id BLOB NOT NULL,             -- 16 bytes
    received_ns INTEGER NOT NULL,       -- ns since the epoch
    done_ns INTEGER,                    -- when its trace was closed; NULL: not evaluated yet
    service TEXT,
    environment TEXT,
    threshold INTEGER NOT NULL,         -- rejection threshold of the first sampling pass, 0 … 2^56
    payload BLOB NOT NULL               -- an OTLP request with this trace's spans only
);
CREATE INDEX chunks_by_trace ON chunks (trace_id, seq);
CREATE INDEX chunks_done ON chunks (done_ns) WHERE done_ns IS NOT NULL;

CREATE TABLE traces (
    trace_id BLOB PRIMARY KEY,
    closed_ns INTEGER NOT NULL,         -- when its last revision was closed
    revision INTEGER NOT NULL,
    service TEXT,
    reason TEXT NOT NULL,               -- how it ended
    completion TEXT NOT NULL,           -- why it was taken as whole
    story TEXT NOT NULL                 -- JSON: what happened to it
);
CREATE INDEX traces_by_closing ON traces (closed_ns);

CREATE TABLE verdicts (
    trace_id BLOB NOT NULL,
    rubric TEXT NOT NULL,
    closed_ns INTEGER NOT NULL,
    service TEXT,
    environment TEXT,
    passed INTEGER,                     -- NULL: neither passed nor failed
    verdict TEXT NOT NULL,              -- JSON, as in a verdict file
    PRIMARY KEY (trace_id, rubric)
);
CREATE INDEX verdicts_by_closing ON verdicts (closed_ns);
CREATE INDEX verdicts_by_rubric ON verdicts (rubric, closed_ns);
