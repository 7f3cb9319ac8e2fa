-- Version 10: traces whose reference came, changed or went after their spans were let go: they are to be read and judged
-- once more.

CREATE TABLE belated (
    trace_id BLOB PRIMARY KEY,          -- 16 bytes
    wanted BLOB NOT NULL,               -- 16 bytes, of the references as they are by now: another change begins anew
    since_ns INTEGER NOT NULL,          -- when the change was noticed, ns since the epoch
    due_ns INTEGER NOT NULL,            -- not before
    attempts INTEGER NOT NULL,          -- that came to nothing
    reason TEXT,                        -- why the latest did; NULL: none was made
    over INTEGER NOT NULL               -- 1: given up, for that reason
) WITHOUT ROWID;
CREATE INDEX belated_due ON belated (due_ns) WHERE over = 0;
CREATE INDEX belated_by_age ON belated (since_ns);
