-- Version 4: turns of conversations whose session was drawn, until the session has been judged and may not grow any more.

CREATE TABLE turns (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of writing; a turn that changes gets a new one
    trace_id BLOB NOT NULL UNIQUE,      -- 16 bytes: a trace is one turn of one session
    session_key BLOB NOT NULL,          -- 16 bytes: of one run of a session, from its first turn until it may not grow
    service TEXT,
    environment TEXT,
    session_id TEXT NOT NULL,           -- as the application has it
    closed_ns INTEGER NOT NULL,         -- when the trace was judged, ns since the epoch
    done_ns INTEGER,                    -- when the session was judged with it; NULL: not yet
    turn TEXT NOT NULL                  -- JSON: what was said and done
);
CREATE INDEX turns_by_session ON turns (session_key, seq);
