-- name: append
INSERT INTO chunks (trace_id, received_ns, held, service, environment, threshold, payload) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: redraw
UPDATE chunks SET threshold = :threshold WHERE trace_id = :trace_id AND threshold < :threshold;

-- name: chunks
SELECT payload FROM chunks WHERE trace_id = ? ORDER BY seq;

-- name: latest_held
SELECT trace_id FROM chunks WHERE NOT held GROUP BY trace_id ORDER BY max(seq) DESC LIMIT ?;

-- name: chunks_and_whether_ended
-- Whether the trace has ended is asked once, not with each chunk.
SELECT payload, EXISTS (SELECT 1 FROM traces WHERE trace_id = :trace_id) FROM chunks WHERE trace_id = :trace_id ORDER BY seq;

-- name: begin
BEGIN;

-- name: commit
COMMIT;

-- name: recover
SELECT c.trace_id, c.received_ns, c.held OR c.seq <= ifnull(t.last_chunk, 0), c.service, c.environment, c.threshold, t.revision, t.closed_ns, c.payload
FROM chunks AS c LEFT JOIN traces AS t ON t.trace_id = c.trace_id
ORDER BY c.trace_id, c.seq;

-- name: recover_of
SELECT c.trace_id, c.received_ns, c.held OR c.seq <= ifnull(t.last_chunk, 0), c.service, c.environment, c.threshold, t.revision, t.closed_ns, c.payload
FROM chunks AS c LEFT JOIN traces AS t ON t.trace_id = c.trace_id
WHERE c.trace_id = ?
ORDER BY c.seq;

-- name: held_status
-- The revision that was written of a trace, the last of the chunks that are evaluated now, and of those evaluated before.
SELECT t.revision, (SELECT max(seq) FROM (SELECT seq FROM chunks WHERE trace_id = :trace_id ORDER BY seq LIMIT :chunks)),
       t.last_chunk
FROM (SELECT 1) LEFT JOIN traces AS t ON t.trace_id = :trace_id;

-- name: mark_done
UPDATE traces SET last_chunk = max(ifnull(last_chunk, 0), ifnull(:last_chunk, 0)) WHERE trace_id = :trace_id;

-- name: finish_trace
-- A revision that was written already, or an older one that comes late, changes nothing but itself.
INSERT INTO traces (trace_id, closed_ns, revision, service, reason, completion, story, last_chunk)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (trace_id) DO UPDATE SET
    closed_ns = excluded.closed_ns, revision = excluded.revision, service = excluded.service,
    reason = excluded.reason, completion = excluded.completion, story = excluded.story,
    last_chunk = max(ifnull(last_chunk, 0), ifnull(excluded.last_chunk, 0))
WHERE excluded.revision >= traces.revision;

-- name: dismiss
DELETE FROM chunks WHERE seq IN (SELECT seq FROM chunks WHERE trace_id = ? ORDER BY seq LIMIT ?);

-- name: holds_judged
-- What is only held (log records) came later than that, or was judged with the rest.
SELECT 1 FROM chunks AS c JOIN traces AS t ON t.trace_id = c.trace_id
WHERE c.trace_id = ? AND c.seq <= t.last_chunk LIMIT 1;

-- name: ended_and_purged
SELECT trace_id FROM traces AS t WHERE NOT EXISTS (SELECT 1 FROM chunks AS c WHERE c.trace_id = t.trace_id)
ORDER BY closed_ns DESC LIMIT ?;

-- name: forget_verdicts
-- What an earlier revision said of rubrics that this one does not speak of no longer holds.
DELETE FROM verdicts WHERE trace_id = ?;

-- name: add_verdict
INSERT INTO verdicts (trace_id, rubric, closed_ns, service, environment, passed, verdict, probability, version)
VALUES (:trace_id, :rubric, :closed_ns, :service, :environment, :passed, :verdict, :probability, :version)
ON CONFLICT (trace_id, rubric) DO UPDATE SET
    closed_ns = excluded.closed_ns, service = excluded.service, environment = excluded.environment,
    passed = excluded.passed, verdict = excluded.verdict, probability = excluded.probability, version = excluded.version;

-- name: story
SELECT story, reason, completion, revision, service, closed_ns FROM traces WHERE trace_id = ?;

-- name: recent_traces
-- What names no service is found under the name that windows and metrics give it.
SELECT t.trace_id, t.closed_ns, t.revision, t.service, t.reason, t.completion, t.story,
       (SELECT json_group_array(json_object('rubric', v.rubric, 'passed', json(CASE v.passed WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END),
                                            'state', json_extract(v.verdict, '$.state'), 'composite', json_extract(v.verdict, '$.composite'),
                                            'reason', substr(json_extract(v.verdict, '$.reason'), 1, 500),
                                            'reason_parts', json_extract(v.verdict, '$.reason_parts')))
        FROM verdicts AS v WHERE v.trace_id = t.trace_id)
FROM traces AS t
WHERE (:reason IS NULL OR t.reason = :reason)
  AND (:service IS NULL OR is_named(coalesce(nullif(t.service, ''), 'unknown_service'), :service))
  AND (:since IS NULL OR t.closed_ns >= :since)
  AND (:after_ns IS NULL OR (t.closed_ns, t.trace_id) < (:after_ns, :after_id))
ORDER BY t.closed_ns DESC, t.trace_id DESC LIMIT :limit;

-- name: verdicts_of_trace
SELECT verdict FROM verdicts WHERE trace_id = ? ORDER BY rubric;

-- name: recent_verdicts
-- What names no service or environment is found under the name that windows and metrics give it.
SELECT verdict, closed_ns FROM verdicts
WHERE (:rubric IS NULL OR rubric = :rubric)
  AND (:service IS NULL OR is_named(coalesce(nullif(service, ''), 'unknown_service'), :service))
  AND (:environment IS NULL OR is_named(coalesce(nullif(environment, ''), 'unknown'), :environment))
  AND (:trace_id IS NULL OR trace_id = :trace_id)
  AND (:passed IS NULL OR passed IS (CASE :passed WHEN 'true' THEN 1 WHEN 'false' THEN 0 END))
  AND (:state IS NULL OR json_extract(verdict, '$.state') = :state) AND (:since IS NULL OR closed_ns >= :since)
  AND (:after_ns IS NULL OR (closed_ns, trace_id, rubric) < (:after_ns, :after_id, :after_rubric))
ORDER BY closed_ns DESC, trace_id DESC, rubric DESC LIMIT :limit;

-- name: verdicts_by_service_index
-- Without it a search for a service that is rare, or is not there, reads all verdicts that are kept.
CREATE INDEX IF NOT EXISTS verdicts_by_service ON verdicts (coalesce(nullif(service, ''), 'unknown_service'), closed_ns);

-- name: verdicts_failed_index
-- Without it the latest failures are looked for among all verdicts, of which most passed.
CREATE INDEX IF NOT EXISTS verdicts_failed ON verdicts (closed_ns) WHERE passed = 0;

-- name: services_meant
-- One look into the index for each service, not for each verdict.
WITH RECURSIVE kept(name) AS (
  SELECT min(coalesce(nullif(service, ''), 'unknown_service')) FROM verdicts INDEXED BY verdicts_by_service
  UNION ALL
  SELECT (SELECT min(coalesce(nullif(v.service, ''), 'unknown_service'))
          FROM verdicts AS v INDEXED BY verdicts_by_service
          WHERE coalesce(nullif(v.service, ''), 'unknown_service') > kept.name)
  FROM kept WHERE kept.name IS NOT NULL
)
SELECT name FROM kept WHERE is_named(name, ?);

-- name: verdicts_since
SELECT v.verdict, v.closed_ns, json_extract(t.story, '$.cluster'), json_extract(t.story, '$.slices')
FROM verdicts AS v LEFT JOIN traces AS t ON t.trace_id = v.trace_id WHERE v.closed_ns >= ? ORDER BY v.closed_ns;

-- name: verdicts_needed
-- Those that a function of the reader asks for; what is in the others, and in their traces, is not read.
SELECT v.verdict, v.closed_ns, json_extract(t.story, '$.cluster'), json_extract(t.story, '$.slices')
FROM verdicts AS v LEFT JOIN traces AS t ON t.trace_id = v.trace_id
WHERE v.closed_ns >= ? AND needed(v.service, v.environment, v.rubric, v.closed_ns) ORDER BY v.closed_ns;

-- name: weights_since
SELECT service, environment, rubric,
    coalesce(version, CASE WHEN json_valid(verdict) THEN json_extract(verdict, '$.rubric_version') END), closed_ns, passed,
    coalesce(probability, CASE WHEN json_valid(verdict) THEN json_extract(verdict, '$.sampling_probability') END)
FROM verdicts WHERE closed_ns >= ? ORDER BY closed_ns DESC;

-- name: unreached_since
-- By the minute, oldest first. A story that is not what was written is left out.
SELECT t.service, json_extract(t.story, '$.environment') AS environment, r.value AS rubric,
    coalesce(sum(1.0 / json_extract(t.story, '$.sampling.probability')), 0.0), min(t.closed_ns) AS at
FROM (SELECT closed_ns, service, CASE WHEN json_valid(story) THEN story END AS story
      FROM traces WHERE closed_ns >= ? AND instr(story, '"over_budget"')) AS t,
    json_each(t.story, '$.sampling.over_budget') AS r
WHERE json_extract(t.story, '$.sampling.judged_share') = 0
GROUP BY t.closed_ns / 60000000000, t.service, environment, rubric ORDER BY at;

-- name: figures_since
SELECT trace_id, service, json_object(
    'figures', json_extract(story, '$.figures'), 'sampling', json_extract(story, '$.sampling'),
    'cluster', json_extract(story, '$.cluster'), 'environment', json_extract(story, '$.environment')), closed_ns, revision
FROM traces WHERE closed_ns >= ? AND json_extract(story, '$.figures') IS NOT NULL ORDER BY closed_ns;

-- name: latest_verdict
SELECT max(closed_ns) FROM verdicts;

-- name: purge_chunks
-- Only traces all of whose chunks are evaluated: a late span that still waits needs the others. What is only held goes by
-- when it came.
DELETE FROM chunks WHERE seq IN (
    SELECT c.seq FROM chunks AS c LEFT JOIN traces AS t ON t.trace_id = c.trace_id
    WHERE c.received_ns < :before
      AND (CASE WHEN c.seq <= t.last_chunk THEN t.closed_ns WHEN c.held THEN c.received_ns END) < :before
      AND NOT EXISTS (
          SELECT 1 FROM chunks AS o WHERE o.trace_id = c.trace_id AND NOT o.held AND o.seq > ifnull(t.last_chunk, 0))
      AND c.trace_id NOT IN (SELECT trace_id FROM temp.spared)
    LIMIT :limit);

-- name: spared_table
-- Of the connection that writes alone: traces whose chunks the purge that is under way leaves where they are.
CREATE TEMP TABLE spared (trace_id BLOB PRIMARY KEY) WITHOUT ROWID;

-- name: spare_none
DELETE FROM temp.spared;

-- name: spare
INSERT INTO temp.spared (trace_id) VALUES (?);

-- name: completions
-- How the latest traces closed, the latest first. Sessions have no chunks.
SELECT service, completion FROM traces WHERE last_chunk IS NOT NULL ORDER BY closed_ns DESC LIMIT ?;

-- name: purge_verdicts
-- Those whose trace is not there, which a salvaged store may have: others go with their trace.
DELETE FROM verdicts WHERE rowid IN (
    SELECT v.rowid FROM verdicts AS v
    WHERE v.closed_ns < :before AND NOT EXISTS (SELECT 1 FROM traces AS t WHERE t.trace_id = v.trace_id)
    LIMIT :limit);

-- name: purge_traces
-- While a chunk is held its trace keeps its row, and with it the number of its next revision.
DELETE FROM traces WHERE rowid IN (
    SELECT t.rowid FROM traces AS t
    WHERE t.closed_ns < :before AND NOT EXISTS (SELECT 1 FROM chunks AS c WHERE c.trace_id = t.trace_id)
    LIMIT :limit)
RETURNING trace_id, closed_ns, CASE WHEN json_valid(story) THEN json_object(
    'user', json_extract(story, '$.user'), 'session_id', json_extract(story, '$.session_id'),
    'traces', json_extract(story, '$.traces')) ELSE '{}' END;

-- name: whose_table
-- Whose the traces are that are gone while scores that wait, calls or contents of theirs are not: without it nobody could
-- forget those by user.
CREATE TABLE IF NOT EXISTS whose (
    trace_id BLOB PRIMARY KEY,
    closed_ns INTEGER NOT NULL,         -- of its trace, ns since the epoch
    details TEXT NOT NULL               -- JSON: user, session_id and, of a conversation, traces, as its trace had them
) WITHOUT ROWID;

-- name: whose_put
INSERT OR REPLACE INTO whose (trace_id, closed_ns, details)
SELECT :trace_id, :closed_ns, :details
WHERE EXISTS (SELECT 1 FROM outbox WHERE trace_id = :trace_id)
    OR EXISTS (SELECT 1 FROM judge_calls WHERE trace_id = :trace_id)
    OR EXISTS (SELECT 1 FROM contents WHERE trace_id = :trace_id);

-- name: purge_whose
DELETE FROM whose WHERE trace_id IN (
    SELECT w.trace_id FROM whose AS w
    WHERE w.closed_ns < :before AND NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.trace_id = w.trace_id)
        AND NOT EXISTS (SELECT 1 FROM judge_calls AS j WHERE j.trace_id = w.trace_id)
        AND NOT EXISTS (SELECT 1 FROM contents AS c WHERE c.trace_id = w.trace_id)
    LIMIT :limit);

-- name: held_ids
-- Of everything that may outlive the row of its trace. A score that is to be deleted is forgotten already.
SELECT trace_id FROM traces UNION SELECT trace_id FROM chunks UNION SELECT trace_id FROM turns
UNION SELECT trace_id FROM outbox WHERE body IS NOT NULL
UNION SELECT trace_id FROM judge_calls UNION SELECT trace_id FROM contents;

-- name: held_as
SELECT coalesce((SELECT story FROM traces WHERE trace_id = :trace_id),
        (SELECT details FROM whose WHERE trace_id = :trace_id),
        (SELECT json_object('session_id', session_id) FROM turns WHERE trace_id = :trace_id)),
    (SELECT json_extract(turn, '$.case.user_id') FROM turns WHERE trace_id = :trace_id AND json_valid(turn)),
    -- It is as old as it was when it ended, though it was judged again since.
    coalesce(
        (SELECT max(at_ns) FROM (
            SELECT closed_ns AS at_ns FROM traces WHERE trace_id = :trace_id
            UNION ALL SELECT received_ns FROM chunks WHERE trace_id = :trace_id)),
        (SELECT closed_ns FROM whose WHERE trace_id = :trace_id),
        (SELECT closed_ns FROM turns WHERE trace_id = :trace_id),
        (SELECT closed_ns FROM contents WHERE trace_id = :trace_id),
        (SELECT min(at_ns) FROM (
            SELECT at_ns FROM outbox WHERE trace_id = :trace_id
            UNION ALL SELECT at_ns FROM judge_calls WHERE trace_id = :trace_id)));

-- name: judged
SELECT key, answer FROM judged WHERE key IN (SELECT value FROM json_each(?));

-- name: judged_used
UPDATE judged SET used_ns = max(used_ns, ?) WHERE key = ?;

-- name: judged_put
INSERT INTO judged (key, used_ns, answer) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET used_ns = excluded.used_ns, answer = excluded.answer;

-- name: judged_count
SELECT count(*) FROM judged;

-- name: judged_forget
DELETE FROM judged WHERE key IN (SELECT key FROM judged ORDER BY used_ns LIMIT ?);

-- name: spend_add
INSERT INTO judge_spend (hour_s, usd) VALUES (?, ?) ON CONFLICT (hour_s) DO UPDATE SET usd = usd + excluded.usd;

-- name: spend_since
SELECT hour_s, usd FROM judge_spend WHERE hour_s >= ?;

-- name: outbox_put
-- What is said again changes nothing; what is new waits, and keeps its place in the row of what waits already. It is
-- written later than all before, whatever the clock says. Of what was never taken, the first may not be there: it
-- stays next to the time of the score, which is that of whatever comes first. A session that begins under an id that had
-- one before goes on with its scores: their revisions count on, for of two that are shown the higher stands. Of scores
-- without a body, which are to be deleted or were, the version is at least the last revision.
INSERT INTO outbox (id, trace_id, state, due_ns, queued_ns, at_ns, version, attempts, missed, reason, body, written_ms)
VALUES (:id, :trace_id, 'waiting', 0, :now, :at, 1, 0, 0, NULL, :body,
    CASE WHEN :after IS NULL THEN :at / 1000000 ELSE max(:after + 1, :now / 1000000) END)
ON CONFLICT (id) DO UPDATE SET
    queued_ns = CASE state WHEN 'waiting' THEN queued_ns ELSE excluded.queued_ns END,
    written_ms = max(written_ms + 1, coalesce(:after + 1, 0),
        CASE WHEN state IN ('sent', 'stored') THEN :now / 1000000 ELSE 0 END),
    state = 'waiting', due_ns = excluded.due_ns, version = version + 1, attempts = 0, missed = 0, reason = NULL,
    trace_id = excluded.trace_id,
    body = CASE
        WHEN json_extract(body, '$.metadata.revision') >= json_extract(excluded.body, '$.metadata.revision')
        THEN json_set(excluded.body, '$.metadata.revision', json_extract(body, '$.metadata.revision') + 1)
        WHEN body IS NULL AND json_extract(excluded.body, '$.sessionId') IS NOT NULL
        THEN json_set(excluded.body, '$.metadata.revision', version + 1)
        ELSE excluded.body END
WHERE body IS NOT excluded.body;

-- name: outbox_stands
-- Whatever was to be said before: this is what is there.
INSERT INTO outbox (id, trace_id, state, due_ns, queued_ns, at_ns, version, attempts, missed, reason, body, written_ms)
VALUES (:id, :trace_id, 'stored', 0, :now, :at, 1, 0, 0, NULL, :body, coalesce(:after, :at / 1000000))
ON CONFLICT (id) DO UPDATE SET
    state = 'stored', due_ns = 0, at_ns = excluded.at_ns, version = version + 1, attempts = 0, missed = 0, reason = NULL,
    trace_id = excluded.trace_id, body = excluded.body, written_ms = max(written_ms, excluded.written_ms);

-- name: outbox_withdraw
-- What stands there is overwritten at once, for a deletion comes late: a server that stores what it took some seconds
-- later would store it after it was deleted. Before a writing that is not the first, another may stand there.
UPDATE outbox SET
    queued_ns = :now, version = max(version, coalesce(json_extract(body, '$.metadata.revision'), 1)) + 1,
    attempts = 0, missed = 0, reason = NULL,
    written_ms = max(written_ms + 1, CASE WHEN state IN ('sent', 'stored') THEN :now / 1000000 ELSE 0 END),
    due_ns = CASE WHEN state IN ('sent', 'stored') OR state = 'waiting' AND written_ms > at_ns / 1000000 THEN 0
        ELSE :due END,
    body = CASE WHEN state IN ('sent', 'stored') OR state = 'waiting' AND written_ms > at_ns / 1000000
        THEN json_set(body, '$.withdrawn', json('true')) END,
    state = 'waiting'
WHERE (trace_id = :trace_id AND id NOT IN (SELECT value FROM json_each(:kept))
        OR id IN (SELECT value FROM json_each(:gone)))
    AND body IS NOT NULL AND json_extract(body, '$.withdrawn') IS NULL;

-- name: outbox_forget
DELETE FROM outbox
WHERE trace_id = :trace_id AND body NOT LIKE '%,"withdrawn":true}';

-- name: outbox_delete
-- What was sent a moment ago, or is on its way, may be stored there after it was deleted: that waits.
UPDATE outbox SET body = NULL, due_ns = CASE state WHEN 'stored' THEN :now ELSE :settled END, state = 'waiting',
    version = max(version, coalesce(CASE WHEN json_valid(body) THEN json_extract(body, '$.metadata.revision') END, 1)) + 1,
    attempts = 0, queued_ns = :now
WHERE trace_id = :trace_id AND body IS NOT NULL;

-- name: outbox_overwritten
UPDATE outbox SET body = NULL, due_ns = :due, attempts = 0, reason = NULL
WHERE id = :id AND version = :version AND state = 'waiting';

-- name: outbox_due
-- By age; what was postponed comes after what was not, or one that fails each time would keep all others back. What is
-- of a trace that upstream has not taken is held back.
SELECT id, version, at_ns, queued_ns, attempts, missed, body, written_ms FROM outbox
WHERE state = 'waiting' AND due_ns <= :now AND trace_id NOT IN (SELECT trace_id FROM untaken)
ORDER BY due_ns, queued_ns LIMIT :limit;

-- name: outbox_unseen
-- And what was seen, but is to be looked for once more: a deletion that was asked for before it was written again may
-- still take it away, or an earlier writing may come after it.
SELECT id, version, at_ns, queued_ns, attempts, missed, body, written_ms FROM (
    SELECT * FROM outbox WHERE state = 'sent' AND due_ns <= :now
    UNION ALL
    SELECT * FROM outbox
    WHERE state = 'stored' AND deleted_ns > 0 AND due_ns <= :now AND due_ns > 0 AND body IS NOT NULL)
ORDER BY due_ns, id LIMIT :limit;

-- name: outbox_bring_forward
UPDATE outbox SET due_ns = :now
WHERE due_ns > :ahead AND (state = 'waiting' OR state = 'sent' OR state = 'stored' AND deleted_ns > 0);

-- name: outbox_taken
UPDATE outbox SET state = :state, due_ns = :due, reason = NULL WHERE id = :id AND version = :version AND state = 'waiting';

-- name: outbox_seen
UPDATE outbox SET state = 'stored', missed = 0, attempts = 0,
    due_ns = CASE WHEN deleted_ns > :since OR :twice AND state = 'sent' THEN :due ELSE 0 END,
    deleted_ns = CASE WHEN :twice THEN max(deleted_ns, 1) ELSE deleted_ns END
WHERE id = :id AND version = :version AND state IN ('sent', 'stored');

-- name: outbox_missed
UPDATE outbox SET missed = missed + 1, due_ns = :due, state = :state, reason = :reason
WHERE id = :id AND version = :version AND state IN ('sent', 'stored');

-- name: outbox_again
-- Another writing of the same, later than what is shown there.
UPDATE outbox SET missed = missed + 1, due_ns = 0, state = 'waiting', reason = :reason,
    written_ms = max(written_ms + 1, :after)
WHERE id = :id AND version = :version AND state IN ('sent', 'stored');

-- name: outbox_postpone
UPDATE outbox SET attempts = attempts + :more, due_ns = :due, reason = :reason
WHERE id = :id AND version = :version AND state = 'waiting';

-- name: outbox_wake
UPDATE outbox SET due_ns = 0 WHERE state = 'waiting' AND due_ns > 0 AND body IS NOT NULL;

-- name: outbox_park
UPDATE outbox SET state = 'dead', reason = :reason WHERE id = :id AND version = :version AND state = 'waiting';

-- name: outbox_deleted
UPDATE outbox SET state = 'stored', deleted_ns = :now, due_ns = 0
WHERE id = :id AND version = :version AND body IS NULL;

-- name: outbox_status
SELECT
    (SELECT count(*) FROM outbox WHERE state = 'waiting'),
    -- Deletions have a limit by the day: they are late and nobody need be called.
    (SELECT min(queued_ns) FROM outbox
     WHERE state = 'waiting' AND body IS NOT NULL AND trace_id NOT IN (SELECT trace_id FROM untaken)),
    (SELECT count(*) FROM outbox WHERE state = 'sent'), (SELECT count(*) FROM outbox WHERE state = 'dead'),
    (SELECT count(*) FROM outbox WHERE missed > 0 AND missed >= :named AND state IN ('sent', 'waiting')),
    (SELECT count(*) FROM outbox WHERE state = 'waiting' AND trace_id IN (SELECT trace_id FROM untaken));

-- name: outbox_held
SELECT count(*), count(DISTINCT trace_id) FROM outbox
WHERE state = 'waiting' AND trace_id IN (SELECT trace_id FROM untaken);

-- name: untaken_table
-- Traces of which this monitor was sent spans to forward, and of which upstream has taken none so far.
CREATE TABLE IF NOT EXISTS untaken (
    trace_id BLOB PRIMARY KEY,
    since_ns INTEGER NOT NULL,
    due_ns INTEGER NOT NULL,            -- when Langfuse is asked next whether it has the trace all the same
    asked INTEGER NOT NULL DEFAULT 0    -- how often it was
) WITHOUT ROWID;

-- name: untaken_mark
-- A trace of which there was something before, without this mark, is there.
INSERT OR IGNORE INTO untaken (trace_id, since_ns, due_ns) SELECT :trace_id, :now, :due
WHERE NOT EXISTS (SELECT 1 FROM chunks WHERE trace_id = :trace_id)
    AND NOT EXISTS (SELECT 1 FROM traces WHERE trace_id = :trace_id);

-- name: untaken_took
DELETE FROM untaken WHERE trace_id = ?;

-- name: untaken_any
SELECT EXISTS (SELECT 1 FROM untaken);

-- name: untaken_is
SELECT 1 FROM untaken WHERE trace_id = ?;

-- name: untaken_due
SELECT trace_id, asked FROM untaken WHERE due_ns <= :now
    AND EXISTS (SELECT 1 FROM outbox AS o WHERE o.trace_id = untaken.trace_id AND o.state = 'waiting')
ORDER BY due_ns LIMIT :limit;

-- name: untaken_asked
UPDATE untaken SET asked = asked + 1, due_ns = :due WHERE trace_id = :trace_id;

-- name: untaken_bring_forward
UPDATE untaken SET due_ns = :now, since_ns = min(since_ns, :now) WHERE due_ns > :ahead;

-- name: untaken_scores_forget
DELETE FROM outbox WHERE state = 'waiting' AND trace_id IN (SELECT trace_id FROM untaken WHERE since_ns < :before);

-- name: untaken_forget
DELETE FROM untaken WHERE since_ns < :before;

-- name: outbox_dead
SELECT id, lower(hex(trace_id)), queued_ns, at_ns, attempts, reason, body FROM outbox
WHERE state = 'dead' ORDER BY queued_ns, id LIMIT ?;

-- name: outbox_unarrived
SELECT id, lower(hex(trace_id)), queued_ns, at_ns, attempts, reason, body FROM outbox
WHERE missed > 0 AND missed >= :named AND state IN ('sent', 'waiting') ORDER BY queued_ns, id LIMIT :limit;

-- name: outbox_replay
UPDATE outbox SET state = 'waiting', due_ns = 0, attempts = 0, missed = 0, reason = NULL
WHERE state = 'dead' AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)));

-- name: outbox_over_index
-- Without it each purge reads the whole table, with the scores of all traces that are kept.
CREATE INDEX IF NOT EXISTS outbox_over ON outbox (queued_ns) WHERE state IN ('sent', 'stored');

-- name: purge_outbox
-- What waits is never too old, and what was given up is for a person to decide on.
DELETE FROM outbox WHERE rowid IN (
    SELECT rowid FROM outbox WHERE queued_ns < :before AND state IN ('sent', 'stored') LIMIT :limit);

-- name: fact_put
INSERT INTO facts (name, value, checksum) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, checksum = excluded.checksum;

-- name: fact
SELECT name, value, checksum FROM facts WHERE name = ?;

-- name: vectors
SELECT key, vector FROM vectors WHERE key IN (SELECT value FROM json_each(?));

-- name: vectors_used
UPDATE vectors SET used_ns = max(used_ns, ?) WHERE key = ?;

-- name: vectors_put
INSERT INTO vectors (key, used_ns, vector) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET used_ns = excluded.used_ns, vector = excluded.vector;

-- name: vectors_count
SELECT count(*) FROM vectors;

-- name: vectors_forget
DELETE FROM vectors WHERE key IN (SELECT key FROM vectors ORDER BY used_ns LIMIT ?);

-- name: put_turn
INSERT OR REPLACE INTO turns (trace_id, session_key, service, environment, session_id, closed_ns, turn)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: turns
SELECT seq, turn FROM turns WHERE session_key = ? ORDER BY seq;

-- name: holds_turn
-- Of this trace, or of this session.
SELECT 1 FROM turns WHERE trace_id = :of OR session_key = :of LIMIT 1;

-- name: mark_turns_done
UPDATE turns SET done_ns = :closed_ns WHERE session_key = :trace_id AND seq <= :chunks;

-- name: go_on_with_turns
-- A session that takes no more turns goes on: the time of the last that came is that of its last turn.
UPDATE turns SET done_ns = :now WHERE done_ns < :now AND seq = (
    SELECT max(seq) FROM turns WHERE session_key = :session_key);

-- name: recover_turns
SELECT s.trace_id, s.session_key, s.service, s.environment, s.session_id, s.closed_ns, s.done_ns,
       length(CAST(s.turn AS BLOB)), t.revision, t.closed_ns
FROM turns AS s LEFT JOIN traces AS t ON t.trace_id = s.session_key ORDER BY s.session_key, s.closed_ns, s.seq;

-- name: turns_of_session_index
-- With all that a purge asks of a turn: else it reads the table, with what was written in every conversation.
CREATE INDEX IF NOT EXISTS turns_of_session ON turns (session_key, seq, done_ns, closed_ns);

-- name: turns_by_session_gone
DROP INDEX IF EXISTS turns_by_session;

-- name: purge_turns
-- Session by session: to look at a session for each of its turns takes the square of their number.
DELETE FROM turns WHERE seq IN (
    SELECT seq FROM turns WHERE session_key IN (
        SELECT session_key FROM turns GROUP BY session_key
        HAVING NOT max(done_ns IS NULL OR done_ns >= :before) OR max(closed_ns) < :abandoned)
    LIMIT :limit);

-- name: kept
SELECT name, value, checksum FROM kept;

-- name: keep
INSERT INTO kept (name, value, checksum) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, checksum = excluded.checksum;

-- name: let_go
DELETE FROM kept WHERE name = ?;

-- name: mail_put
-- Replaced, not updated: the number changes, so that a delivery of the former body does not end this one.
INSERT OR REPLACE INTO mail (destination, id, queued_ns, body) VALUES (?, ?, ?, ?);

-- name: mail_waiting
SELECT seq, id, queued_ns, body FROM mail WHERE destination = ? AND parked IS NULL ORDER BY seq LIMIT ?;

-- name: mail_done
DELETE FROM mail WHERE seq = ?;

-- name: mail_overtaken
-- What was set aside before this one about the same, which the first characters of an id name.
-- The range is looked up in the index of ids; without it each delivery reads all that waits there.
DELETE FROM mail WHERE parked IS NOT NULL AND seq < :seq AND destination = (SELECT destination FROM mail WHERE seq = :seq)
    AND id >= (SELECT substr(id, 1, :subject) FROM mail WHERE seq = :seq)
    AND id < (SELECT substr(id, 1, :subject) || char(1114111) FROM mail WHERE seq = :seq)
    AND substr(id, 1, :subject) = (SELECT substr(id, 1, :subject) FROM mail WHERE seq = :seq);

-- name: mail_park
UPDATE mail SET parked = ? WHERE seq = ?;

-- name: mail_unpark
UPDATE mail SET parked = NULL WHERE destination = ? AND parked IS NOT NULL;

-- name: mail_move
UPDATE mail SET destination = ? WHERE destination = ?;

-- name: mail_of_nobody
DELETE FROM mail WHERE destination = ?;

-- name: mail_parked_index
-- Without it whoever asks how much is set aside reads all that waits.
CREATE INDEX IF NOT EXISTS mail_parked ON mail (destination, seq) WHERE parked IS NOT NULL;

-- name: mail_status
-- Indexes answer it: a destination that is away for a day has a million rows.
SELECT (SELECT count(*) FROM mail WHERE destination = :destination AND parked IS NULL),
    (SELECT queued_ns FROM mail WHERE destination = :destination AND parked IS NULL ORDER BY seq LIMIT 1),
    (SELECT count(*) FROM mail WHERE destination = :destination AND parked IS NOT NULL);

-- name: mail_parked
-- The latest reason of a destination.
SELECT parked FROM mail WHERE destination = ? AND parked IS NOT NULL ORDER BY seq DESC LIMIT 1;

-- name: mail_forget
DELETE FROM mail WHERE parked IS NOT NULL AND queued_ns < ?;

-- name: noted
SELECT name, value, checksum FROM noted;

-- name: note
INSERT INTO noted (name, value, checksum) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, checksum = excluded.checksum;

-- name: note_gone
DELETE FROM noted WHERE name = ?;

-- name: trends
-- As courses, a row for each stretch of time; of too many verdicts the latest.
SELECT (closed_ns - :since) / :step AS stretch, service, environment, rubric,
    count(*) FILTER (WHERE passed = 1), count(*) FILTER (WHERE passed = 0),
    count(*) FILTER (WHERE passed IS NULL AND why IS NOT 'budget'),
    coalesce(sum(w) FILTER (WHERE passed IS NOT NULL), 0), coalesce(sum(w) FILTER (WHERE passed = 0), 0),
    coalesce(sum(w * w) FILTER (WHERE passed IS NOT NULL), 0),
    count(*) FILTER (WHERE why = 'outage'), count(*) FILTER (WHERE why = 'budget'),
    coalesce(sum(w) FILTER (WHERE why IS NOT NULL), 0), group_concat(DISTINCT version)
FROM (SELECT * FROM (
          SELECT closed_ns, service, environment, rubric, passed,
              1.0 / coalesce(probability, json_extract(verdict, '$.sampling_probability')) AS w,
              coalesce(version, json_extract(verdict, '$.rubric_version')) AS version,
              CASE WHEN passed IS NULL AND is_unanswered(verdict) THEN 'outage' END AS why
          FROM verdicts
          WHERE closed_ns >= :since AND closed_ns < :until AND (:rubric IS NULL OR rubric = :rubric)
          ORDER BY closed_ns DESC LIMIT :most)
      UNION ALL SELECT * FROM (
          SELECT t.closed_ns, t.service, json_extract(t.story, '$.environment'), r.value, NULL,
              1.0 / json_extract(t.story, '$.sampling.probability'), NULL, 'budget'
          FROM traces AS t, json_each(t.story, '$.sampling.over_budget') AS r
          WHERE t.closed_ns >= :since AND t.closed_ns < :until AND (:rubric IS NULL OR r.value = :rubric)
              AND instr(t.story, '"over_budget"') AND json_extract(t.story, '$.sampling.judged_share') = 0
          ORDER BY t.closed_ns DESC LIMIT :most))
GROUP BY stretch, service, environment, rubric;

-- name: courses
-- Weights are inverse inclusion probabilities, and what names no service or environment counts under one name with what
-- names them so, as in the windows. A trace that a spent budget left without an answer has no verdict.
SELECT service, environment, rubric,
    count(*) FILTER (WHERE passed = 1), count(*) FILTER (WHERE passed = 0),
    count(*) FILTER (WHERE passed IS NULL AND why IS NOT 'budget'),
    coalesce(sum(w) FILTER (WHERE passed IS NOT NULL), 0), coalesce(sum(w) FILTER (WHERE passed = 0), 0),
    coalesce(sum(w * w) FILTER (WHERE passed IS NOT NULL), 0),
    count(*) FILTER (WHERE why = 'outage'), count(*) FILTER (WHERE why = 'budget'),
    coalesce(sum(w) FILTER (WHERE why IS NOT NULL), 0)
FROM (SELECT coalesce(nullif(service, ''), 'unknown_service') AS service,
          coalesce(nullif(environment, ''), 'unknown') AS environment, rubric, passed,
          1.0 / coalesce(probability, json_extract(verdict, '$.sampling_probability')) AS w,
          CASE WHEN passed IS NULL AND is_unanswered(verdict) THEN 'outage' END AS why
      FROM verdicts WHERE closed_ns >= :since AND closed_ns < :until
      UNION ALL
      SELECT coalesce(nullif(t.service, ''), 'unknown_service'),
          coalesce(nullif(json_extract(t.story, '$.environment'), ''), 'unknown'), r.value, NULL,
          1.0 / json_extract(t.story, '$.sampling.probability'), 'budget'
      FROM traces AS t, json_each(t.story, '$.sampling.over_budget') AS r
      WHERE t.closed_ns >= :since AND t.closed_ns < :until
          AND instr(t.story, '"over_budget"') AND json_extract(t.story, '$.sampling.judged_share') = 0)
GROUP BY service, environment, rubric;

-- name: first_closed
SELECT min(closed_ns) FROM verdicts WHERE closed_ns >= :since;

-- name: first_of_service
SELECT closed_ns FROM verdicts
WHERE rubric = :rubric AND closed_ns >= :since AND is_named(coalesce(nullif(service, ''), 'unknown_service'), :service)
    AND is_named(coalesce(nullif(environment, ''), 'unknown'), :environment)
ORDER BY closed_ns LIMIT 1;

-- name: metric_means
SELECT service, environment, rubric, metric, sum(value * w) / sum(w), count(*)
FROM (SELECT coalesce(nullif(v.service, ''), 'unknown_service') AS service,
          coalesce(nullif(v.environment, ''), 'unknown') AS environment, v.rubric,
          json_extract(s.value, '$.metric') AS metric,
          json_extract(s.value, '$.value') AS value, 1.0 / ifnull(json_extract(v.verdict, '$.sampling_probability'), 1) AS w
      FROM verdicts AS v, json_each(v.verdict, '$.scores') AS s
      WHERE v.closed_ns >= :since AND v.closed_ns < :until AND json_type(s.value, '$.value') IN ('integer', 'real'))
GROUP BY service, environment, rubric, metric;

-- name: pulled_known
SELECT trace_id, reason, spans FROM pulled WHERE trace_id IN (SELECT value FROM json_each(?));

-- name: pulled_put
INSERT INTO pulled (trace_id, last_ns, reason, spans) VALUES (?, ?, ?, ?)
ON CONFLICT (trace_id) DO UPDATE SET last_ns = max(last_ns, excluded.last_ns), reason = excluded.reason, spans = excluded.spans;

-- name: pulled_taken
SELECT trace_id, last_ns FROM pulled WHERE last_ns >= :from_ns AND reason IS NULL ORDER BY last_ns LIMIT :limit;

-- name: pulled_forget
DELETE FROM pulled WHERE trace_id IN (SELECT trace_id FROM pulled WHERE last_ns < :before LIMIT :limit);

-- name: referred_put
INSERT INTO referred (key, trace_id, closed_ns, digest) VALUES (?, ?, ?, ?)
ON CONFLICT (key, trace_id) DO UPDATE SET closed_ns = excluded.closed_ns, digest = excluded.digest;

-- name: referred_drop
DELETE FROM referred WHERE trace_id = ?;

-- name: referred_page
SELECT closed_ns, key, trace_id, digest FROM referred
WHERE (closed_ns, key, trace_id) > (:closed_ns, :key, :trace_id) ORDER BY closed_ns, key, trace_id LIMIT :limit;

-- name: referred_of
SELECT key, digest FROM referred WHERE trace_id = ?;

-- name: referred_forget
DELETE FROM referred WHERE (key, trace_id) IN (SELECT key, trace_id FROM referred WHERE closed_ns < :before LIMIT :limit);

-- name: belated_note
-- One that was given up stays so until its references change once more.
INSERT INTO belated (trace_id, wanted, since_ns, due_ns, attempts, reason, over)
VALUES (:trace_id, :wanted, :now, :due, 0, NULL, 0)
ON CONFLICT (trace_id) DO UPDATE SET
    wanted = excluded.wanted, since_ns = excluded.since_ns, due_ns = excluded.due_ns, attempts = 0, reason = NULL, over = 0
WHERE wanted IS NOT excluded.wanted;

-- name: belated_due
-- What is further ahead than anything waits is of a clock that was set back.
SELECT trace_id, wanted, since_ns, attempts FROM belated
WHERE over = 0 AND (due_ns <= :now OR due_ns > :ahead) ORDER BY due_ns LIMIT :limit;

-- name: belated_of
SELECT since_ns, due_ns, attempts, reason, over FROM belated WHERE trace_id = ?;

-- name: belated_postpone
UPDATE belated SET attempts = attempts + 1, due_ns = :due, reason = :reason, over = :over
WHERE trace_id = :trace_id AND wanted = :wanted;

-- name: belated_done
DELETE FROM belated WHERE trace_id = :trace_id AND wanted = :wanted;

-- name: belated_revive
UPDATE belated SET over = 0, attempts = 0, due_ns = :now WHERE over = 1 AND reason = :reason;

-- name: belated_status
SELECT count(*) FILTER (WHERE over = 0), min(since_ns) FILTER (WHERE over = 0), count(*) FILTER (WHERE over = 1) FROM belated;

-- name: belated_forget
DELETE FROM belated WHERE trace_id IN (SELECT trace_id FROM belated WHERE since_ns < :before LIMIT :limit);
-- name: search_verdicts
-- The latest verdicts that the columns leave, then those of them that what is inside leaves.
WITH latest AS MATERIALIZED (
  SELECT v.trace_id, v.rubric, v.closed_ns, v.passed, v.verdict,
         coalesce(nullif(v.service, ''), 'unknown_service') AS service,
         coalesce(nullif(v.environment, ''), 'unknown') AS environment
  FROM verdicts AS v
  WHERE (:rubric IS NULL OR v.rubric = :rubric)
    AND (:service IS NULL OR is_named(coalesce(nullif(v.service, ''), 'unknown_service'), :service))
    AND (:environment IS NULL OR is_named(coalesce(nullif(v.environment, ''), 'unknown'), :environment))
    AND (:since IS NULL OR v.closed_ns >= :since) AND (:until IS NULL OR v.closed_ns < :until)
    AND (:passed IS NULL OR v.passed IS (CASE :passed WHEN 'true' THEN 1 WHEN 'false' THEN 0 END))
    AND (:after_ns IS NULL OR (v.closed_ns, v.trace_id, v.rubric) < (:after_ns, :after_id, :after_rubric))
  ORDER BY v.closed_ns DESC, v.trace_id DESC, v.rubric DESC LIMIT :most
), matching AS MATERIALIZED (
  SELECT l.*, json_extract(t.story, '$.name') AS name,
         CASE WHEN :in_reasons THEN json_extract(t.story, '$.input_beginning') END AS input_beginning
  FROM latest AS l LEFT JOIN traces AS t ON t.trace_id = l.trace_id
  WHERE (:state IS NULL OR json_extract(l.verdict, '$.state') = :state)
    AND (:release IS NULL OR is_named(json_extract(t.story, '$.release'), :release))
    AND (:prompt IS NULL OR is_named(json_extract(t.story, '$.prompt'), :prompt))
    AND (:model IS NULL OR is_named(json_extract(t.story, '$.model'), :model))
    AND (:below IS NULL OR json_extract(l.verdict, '$.composite_norm') < :below)
    AND (:metric IS NULL OR EXISTS (
      SELECT 1 FROM json_each(l.verdict, '$.scores') AS s
      WHERE json_extract(s.value, '$.metric') = :metric AND json_extract(s.value, '$.rating') IN ('fail', 'blocker')))
    AND (:text IS NULL OR instr(folded(json_extract(t.story, '$.name')), :text)
      OR (:in_reasons AND (instr(folded(json_extract(t.story, '$.input_beginning')), :text)
        OR instr(folded(json_extract(l.verdict, '$.reason')), :text) OR EXISTS (
        SELECT 1 FROM json_each(l.verdict, '$.scores') AS s
        WHERE instr(folded(json_extract(s.value, '$.reason')), :text)))))
)
SELECT verdict, closed_ns, name, input_beginning FROM matching ORDER BY closed_ns DESC, trace_id DESC, rubric DESC LIMIT :limit;
-- name: count_verdicts
-- How many match, by what one may choose; the outcome is counted whatever outcome is chosen.
WITH latest AS MATERIALIZED (
  SELECT v.trace_id, v.rubric, v.closed_ns, v.passed, v.verdict,
         coalesce(nullif(v.service, ''), 'unknown_service') AS service,
         coalesce(nullif(v.environment, ''), 'unknown') AS environment
  FROM verdicts AS v
  WHERE (:rubric IS NULL OR v.rubric = :rubric)
    AND (:service IS NULL OR is_named(coalesce(nullif(v.service, ''), 'unknown_service'), :service))
    AND (:environment IS NULL OR is_named(coalesce(nullif(v.environment, ''), 'unknown'), :environment))
    AND (:since IS NULL OR v.closed_ns >= :since) AND (:until IS NULL OR v.closed_ns < :until)
  ORDER BY v.closed_ns DESC, v.trace_id DESC, v.rubric DESC LIMIT :most
), matching AS MATERIALIZED (
  SELECT l.*, json_extract(t.story, '$.name') AS name
  FROM latest AS l LEFT JOIN traces AS t ON t.trace_id = l.trace_id
  WHERE (:state IS NULL OR json_extract(l.verdict, '$.state') = :state)
    AND (:release IS NULL OR is_named(json_extract(t.story, '$.release'), :release))
    AND (:prompt IS NULL OR is_named(json_extract(t.story, '$.prompt'), :prompt))
    AND (:model IS NULL OR is_named(json_extract(t.story, '$.model'), :model))
    AND (:below IS NULL OR json_extract(l.verdict, '$.composite_norm') < :below)
    AND (:metric IS NULL OR EXISTS (
      SELECT 1 FROM json_each(l.verdict, '$.scores') AS s
      WHERE json_extract(s.value, '$.metric') = :metric AND json_extract(s.value, '$.rating') IN ('fail', 'blocker')))
    AND (:text IS NULL OR instr(folded(json_extract(t.story, '$.name')), :text)
      OR (:in_reasons AND (instr(folded(json_extract(t.story, '$.input_beginning')), :text)
        OR instr(folded(json_extract(l.verdict, '$.reason')), :text) OR EXISTS (
        SELECT 1 FROM json_each(l.verdict, '$.scores') AS s
        WHERE instr(folded(json_extract(s.value, '$.reason')), :text)))))
)
, chosen AS (
  SELECT * FROM matching WHERE :passed IS NULL OR passed IS (CASE :passed WHEN 'true' THEN 1 WHEN 'false' THEN 0 END)
), failing AS (
  SELECT json_extract(s.value, '$.metric') AS metric FROM chosen AS c, json_each(c.verdict, '$.scores') AS s
  WHERE c.passed IS NOT 1 AND json_extract(s.value, '$.rating') IN ('fail', 'blocker')
)
SELECT 'passed', CASE passed WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'none' END AS value, count(*) AS n
  FROM matching GROUP BY value
UNION ALL SELECT 'looked_at', '', count(*) FROM latest
UNION ALL SELECT * FROM (SELECT 'service', service, count(*) AS n FROM chosen GROUP BY service ORDER BY n DESC LIMIT 100)
UNION ALL SELECT * FROM (
  SELECT 'environment', environment, count(*) AS n FROM chosen GROUP BY environment ORDER BY n DESC LIMIT 100)
UNION ALL SELECT * FROM (SELECT 'rubric', rubric, count(*) AS n FROM chosen GROUP BY rubric ORDER BY n DESC LIMIT 100)
UNION ALL SELECT * FROM (SELECT 'metric', metric, count(*) AS n FROM failing GROUP BY metric ORDER BY n DESC LIMIT 100);

-- name: count_columns
-- The same counts by what columns hold, where nothing inside was asked for: no verdict is read.
SELECT service, environment, rubric, CASE passed WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'none' END, count(*)
FROM (
  SELECT coalesce(nullif(v.service, ''), 'unknown_service') AS service,
         coalesce(nullif(v.environment, ''), 'unknown') AS environment, v.rubric, v.passed
  FROM verdicts AS v
  WHERE (:rubric IS NULL OR v.rubric = :rubric)
    AND (:service IS NULL OR is_named(coalesce(nullif(v.service, ''), 'unknown_service'), :service))
    AND (:environment IS NULL OR is_named(coalesce(nullif(v.environment, ''), 'unknown'), :environment))
    AND (:since IS NULL OR v.closed_ns >= :since) AND (:until IS NULL OR v.closed_ns < :until)
  ORDER BY v.closed_ns DESC LIMIT :most
) GROUP BY service, environment, rubric, passed;
-- name: failed_verdicts
-- The latest verdicts that did not pass.
SELECT v.verdict
FROM (
  SELECT at FROM (
    SELECT v.rowid AS at, v.passed
    FROM verdicts AS v
    WHERE (:rubric IS NULL OR v.rubric = :rubric)
      AND (:service IS NULL OR is_named(coalesce(nullif(v.service, ''), 'unknown_service'), :service))
      AND (:environment IS NULL OR is_named(coalesce(nullif(v.environment, ''), 'unknown'), :environment))
      AND (:since IS NULL OR v.closed_ns >= :since) AND (:until IS NULL OR v.closed_ns < :until)
    ORDER BY v.closed_ns DESC LIMIT :most
  ) WHERE passed IS NOT 1 AND (:passed IS NULL OR passed IS (CASE :passed WHEN 'true' THEN 1 WHEN 'false' THEN 0 END))
  LIMIT :failed
) AS f JOIN verdicts AS v ON v.rowid = f.at;

-- name: compared
-- Verdicts with what they may be compared by; of too many the latest.
SELECT v.closed_ns, coalesce(nullif(v.service, ''), 'unknown_service') AS service,
    coalesce(nullif(v.environment, ''), 'unknown') AS environment, v.rubric, v.passed,
    1.0 / ifnull(json_extract(v.verdict, '$.sampling_probability'), 1), json_extract(t.story, '$.session_id'),
    json_extract(t.story, '$.user'), json_extract(t.story, '$.name'), json_extract(t.story, '$.release'),
    json_extract(t.story, '$.prompt'), json_extract(t.story, '$.model'),
    json_extract(v.verdict, '$.rubric_version'), lower(hex(v.trace_id)),
    CASE WHEN :all_metrics OR :metric IS NOT NULL THEN
        (SELECT json_group_array(json_array(json_extract(s.value, '$.metric'), json_extract(s.value, '$.value'),
                                            ifnull(json_extract(s.value, '$.rating') IN ('fail', 'blocker'), 0)))
         FROM json_each(v.verdict, '$.scores') AS s
         WHERE (:all_metrics OR json_extract(s.value, '$.metric') = :metric)
           AND json_type(s.value, '$.value') IN ('integer', 'real'))
    END,
    json_extract(t.story, '$.slices'), v.passed IS NULL AND is_unanswered(v.verdict)
FROM verdicts AS v LEFT JOIN traces AS t ON t.trace_id = v.trace_id
WHERE v.closed_ns >= :since AND v.closed_ns < :until
    AND (:rubric IS NULL OR v.rubric = :rubric)
    AND (:service IS NULL OR is_named(coalesce(nullif(v.service, ''), 'unknown_service'), :service))
    AND (:environment IS NULL OR is_named(coalesce(nullif(v.environment, ''), 'unknown'), :environment))
ORDER BY v.closed_ns DESC LIMIT :most;

-- name: compared_unreached
-- Traces that a spent budget left without an answer, in the form of verdicts that neither passed nor failed.
SELECT t.closed_ns, coalesce(nullif(t.service, ''), 'unknown_service') AS service,
    coalesce(nullif(json_extract(t.story, '$.environment'), ''), 'unknown') AS environment, r.value, NULL,
    1.0 / json_extract(t.story, '$.sampling.probability'), json_extract(t.story, '$.session_id'),
    json_extract(t.story, '$.user'), json_extract(t.story, '$.name'), json_extract(t.story, '$.release'),
    json_extract(t.story, '$.prompt'), json_extract(t.story, '$.model'), NULL, lower(hex(t.trace_id)), NULL,
    json_extract(t.story, '$.slices'), 1
FROM traces AS t, json_each(t.story, '$.sampling.over_budget') AS r
WHERE t.closed_ns >= :since AND t.closed_ns < :until
    AND instr(t.story, '"over_budget"') AND json_extract(t.story, '$.sampling.judged_share') = 0
    AND (:rubric IS NULL OR r.value = :rubric)
    AND (:service IS NULL OR is_named(coalesce(nullif(t.service, ''), 'unknown_service'), :service))
    AND (:environment IS NULL OR is_named(coalesce(nullif(json_extract(t.story, '$.environment'), ''), 'unknown'), :environment))
ORDER BY t.closed_ns DESC LIMIT :most;

-- name: compared_figures
-- Traces with a figure of the application, in the form of verdicts that neither passed nor failed.
SELECT t.closed_ns, coalesce(nullif(t.service, ''), 'unknown_service') AS service,
    coalesce(nullif(json_extract(t.story, '$.environment'), ''), 'unknown') AS environment, '', NULL,
    1.0 / json_extract(t.story, '$.sampling.probability'), json_extract(t.story, '$.session_id'),
    json_extract(t.story, '$.user'), json_extract(t.story, '$.name'), json_extract(t.story, '$.release'),
    json_extract(t.story, '$.prompt'), json_extract(t.story, '$.model'), NULL, lower(hex(t.trace_id)),
    json_array(json_array(:metric, json_extract(t.story, '$.figures.values.' || :metric), 0)), NULL, 0
FROM traces AS t
WHERE t.closed_ns >= :since AND t.closed_ns < :until
    AND json_extract(t.story, '$.figures.values.' || :metric) IS NOT NULL
    AND json_extract(t.story, '$.sampling.probability') > 0
    AND (:service IS NULL OR is_named(coalesce(nullif(t.service, ''), 'unknown_service'), :service))
    AND (:environment IS NULL OR is_named(coalesce(nullif(json_extract(t.story, '$.environment'), ''), 'unknown'), :environment))
ORDER BY t.closed_ns DESC LIMIT :most;

-- name: judge_calls_put
INSERT OR REPLACE INTO judge_calls (call, trace_id, at_ns, size, body) VALUES (?, ?, ?, ?, ?);

-- name: judge_calls_of
SELECT body FROM judge_calls WHERE trace_id = ? ORDER BY at_ns, call;

-- name: judge_calls_beyond
-- Those that are too old, and the oldest of those that together are too large.
DELETE FROM judge_calls WHERE (trace_id, call) IN (
    SELECT trace_id, call FROM (
        SELECT trace_id, call, at_ns, sum(size) OVER (ORDER BY at_ns DESC, trace_id, call) AS together FROM judge_calls
    )
    WHERE at_ns < :before OR together > :most
);

-- name: judge_calls_before
DELETE FROM judge_calls WHERE at_ns < ?;

-- name: judge_calls_size
SELECT coalesce(sum(size), 0) FROM judge_calls;

-- name: contents_wanted
INSERT INTO contents (trace_id, closed_ns, revision, waits) VALUES (?, ?, ?, 1)
ON CONFLICT (trace_id) DO UPDATE SET closed_ns = excluded.closed_ns, revision = excluded.revision, waits = 1;

-- name: contents_unwanted
DELETE FROM contents WHERE trace_id = ?;

-- name: contents_of
SELECT body FROM contents WHERE trace_id = ? AND body IS NOT NULL;

-- name: contents_waiting
SELECT trace_id, revision FROM contents WHERE waits LIMIT ?;

-- name: contents_put
-- Nothing is written for a trace that was erased meanwhile, or has another revision.
UPDATE contents SET waits = 0, size = length(:body), body = :body WHERE trace_id = :trace_id AND revision = :revision;

-- name: contents_missed
DELETE FROM contents WHERE trace_id = :trace_id AND revision = :revision AND body IS NULL;

-- name: contents_stand
-- A revision whose spans are gone leaves what was kept of the one before.
UPDATE contents SET waits = 0 WHERE trace_id = :trace_id AND revision = :revision;

-- name: contents_forget
DELETE FROM contents WHERE closed_ns < ?;

-- name: contents_bytes
SELECT ifnull(sum(size), 0) FROM contents;

-- name: contents_size
SELECT ifnull(sum(size), 0) FROM contents WHERE trace_id = ?;

-- name: contents_oldest
SELECT trace_id, size FROM contents ORDER BY closed_ns, trace_id LIMIT ?;
