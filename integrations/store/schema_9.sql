-- Version 9: a chunk is written once. That a trace was evaluated with it is said by the trace, in a few bytes, and no longer
-- by a mark on each chunk, which wrote its payload anew. A number is never used twice, for a trace outlives its chunks.

ALTER TABLE traces ADD COLUMN last_chunk INTEGER;  -- the last chunk that it was evaluated with; NULL or 0: none
UPDATE traces SET last_chunk = (
    SELECT max(c.seq) FROM chunks AS c WHERE c.trace_id = traces.trace_id AND c.done_ns <= traces.closed_ns)
WHERE trace_id IN (SELECT trace_id FROM chunks WHERE done_ns IS NOT NULL);

ALTER TABLE chunks RENAME TO marked_chunks;
CREATE TABLE chunks (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of arrival
    trace_id BLOB NOT NULL,             -- 16 bytes
    received_ns INTEGER NOT NULL,       -- ns since the epoch
    held INTEGER NOT NULL,              -- 1: of use only once others of its trace come; nothing waits for it
    service TEXT,
    environment TEXT,
    threshold INTEGER NOT NULL,         -- rejection threshold of the first sampling pass, 0 … 2^56
    payload BLOB NOT NULL               -- an OTLP request with this trace's spans only
);
INSERT INTO chunks (seq, trace_id, received_ns, held, service, environment, threshold, payload)
SELECT seq, trace_id, received_ns, done_ns IS NOT NULL, service, environment, threshold, payload
FROM marked_chunks ORDER BY seq;
DROP TABLE marked_chunks;
CREATE INDEX chunks_by_trace ON chunks (trace_id, seq);
CREATE INDEX chunks_by_age ON chunks (received_ns);
