-- Version 5: what the watch over statuses and alerts remembers, and events that were not yet handed over.

CREATE TABLE kept (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL                 -- JSON
) WITHOUT ROWID;
