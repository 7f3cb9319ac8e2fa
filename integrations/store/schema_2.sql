-- Version 2: what judges answered, so that nothing is paid for twice, and what that cost.

CREATE TABLE judged (
    key TEXT PRIMARY KEY,               -- hex SHA-256 of model, prompt version, question and what it shows of the case
    used_ns INTEGER NOT NULL,           -- when it last answered something
    answer TEXT NOT NULL                -- JSON
) WITHOUT ROWID;
CREATE INDEX judged_by_use ON judged (used_ns);

CREATE TABLE judge_spend (
    hour_s INTEGER PRIMARY KEY,         -- s since the epoch, when the hour began (UTC)
    usd REAL NOT NULL
);
