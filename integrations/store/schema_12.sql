-- Version 12: the order of a score's writings, and deletions that its destination may still carry out.

-- Time of the latest writing of this score, ms since the epoch: that of the score for the first, and later with each.
-- The destination shows the writing with the latest. What an earlier version wrote bears the time of the score.
ALTER TABLE outbox ADD COLUMN written_ms INTEGER NOT NULL DEFAULT 0;
UPDATE outbox SET written_ms = at_ns / 1000000;
-- When it was asked to be deleted there, ns since the epoch; 0: it was not. Deletions are done later than writings.
ALTER TABLE outbox ADD COLUMN deleted_ns INTEGER NOT NULL DEFAULT 0;
CREATE INDEX outbox_missed ON outbox (missed) WHERE missed > 0;
CREATE INDEX outbox_watched ON outbox (due_ns) WHERE state = 'stored' AND deleted_ns > 0;
