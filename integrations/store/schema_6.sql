-- Version 6: what is to be delivered to others, and what was noted in the same transaction.

CREATE TABLE mail (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of delivery; never used twice: what replaces another is another
    destination TEXT NOT NULL,
    id TEXT NOT NULL,                   -- a later body under the same id takes the place of one that still waits
    queued_ns INTEGER NOT NULL,         -- ns since the epoch
    parked TEXT,                        -- why it is set aside; NULL: it waits to be delivered
    body TEXT NOT NULL,                 -- JSON
    UNIQUE (destination, id)
);
CREATE INDEX mail_waiting ON mail (destination, seq) WHERE parked IS NULL;

CREATE TABLE noted (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL                 -- JSON
) WITHOUT ROWID;
