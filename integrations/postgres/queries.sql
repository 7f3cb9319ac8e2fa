-- name: begin
SELECT set_config('search_path', quote_ident(%s), true), set_config('statement_timeout', %s, true),
    set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true);

-- name: make_versions
CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER PRIMARY KEY,
    oldest INTEGER NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- name: lock_schema
-- Of one transaction, so it holds behind PgBouncer as well.
SELECT pg_advisory_xact_lock(hashtext('sidejudge'), hashtext(%s));

-- name: take
INSERT INTO leases AS held (name, holder, token, expires_at)
SELECT name, %(me)s, 1, now() + make_interval(secs => %(ttl)s) FROM unnest(%(names)s::text[]) AS name
WHERE NOT EXISTS (SELECT FROM leases WHERE leases.name = name.name AND holder <> %(me)s AND expires_at > now())
ORDER BY name
ON CONFLICT (name) DO UPDATE SET
    token = held.token + CASE WHEN held.holder = excluded.holder AND held.expires_at > now() THEN 0 ELSE 1 END,
    taken_at = CASE WHEN held.holder = excluded.holder AND held.expires_at > now() THEN held.taken_at ELSE now() END,
    holder = excluded.holder,
    expires_at = excluded.expires_at
WHERE held.holder = excluded.holder OR held.expires_at <= now()
RETURNING name, token;

-- name: release
UPDATE leases SET expires_at = now() WHERE holder = %s AND name = ANY(%s) AND expires_at > now();

-- name: fence
SELECT 1 FROM leases WHERE name = %s AND holder = %s AND token = %s AND expires_at > now() FOR SHARE;

-- name: heartbeat
INSERT INTO monitors (monitor, version, host, started_at) VALUES (%s, %s, %s, to_timestamp(%s))
ON CONFLICT (monitor) DO UPDATE SET version = excluded.version, host = excluded.host, started_at = excluded.started_at,
    seen_at = now(), left_at = NULL
WHERE monitors.started_at <= excluded.started_at OR monitors.left_at IS NOT NULL
    OR monitors.seen_at < now() - make_interval(secs => %s);

-- name: monitors
SELECT monitor, version, host, started_at, extract(epoch FROM now() - seen_at)::float8, left_at IS NOT NULL
FROM monitors ORDER BY monitor;

-- name: present
SELECT count(*), extract(epoch FROM clock_timestamp())::float8
FROM monitors WHERE left_at IS NULL AND seen_at > now() - make_interval(secs => %s);

-- name: windows
INSERT INTO windows (monitor, name, body) VALUES (%s, %s, %s)
ON CONFLICT (monitor, name) DO UPDATE SET body = excluded.body, written_at = now();

-- name: save
INSERT INTO states AS kept (name, lease, token, body) VALUES (%s, %s, %s, %s)
ON CONFLICT (name) DO UPDATE
SET lease = excluded.lease, token = excluded.token, body = excluded.body, written_at = now();

-- name: claim
INSERT INTO claims AS made (kind, id, monitor, token) VALUES (%(kind)s, %(id)s, %(monitor)s, %(token)s)
ON CONFLICT (kind, id) DO UPDATE
SET monitor = excluded.monitor, token = excluded.token, claimed_at = now()
WHERE made.done_at IS NULL AND (made.token = excluded.token AND made.monitor = excluded.monitor
    OR made.claimed_at < now() - make_interval(secs => %(again)s))
RETURNING 1;

-- name: lock_spend
-- Of one transaction: slices are granted one after the other.
SELECT pg_advisory_xact_lock(hashtext('sidejudge spend'));

-- name: report
INSERT INTO judge_spend AS row (hour, monitor, granted, spent, demand)
VALUES (%(hour)s, %(monitor)s, %(committed)s, %(spent)s, %(demand)s)
ON CONFLICT (hour, monitor) DO UPDATE
SET spent = excluded.spent, demand = excluded.demand, written_at = now(),
    granted = GREATEST(LEAST(row.granted, %(keep)s), excluded.granted)
RETURNING granted;

-- name: settle
UPDATE judge_spend SET spent = %s, granted = %s WHERE monitor = %s AND hour = %s AND granted <> %s;

-- name: known
SELECT hour, granted, spent FROM judge_spend WHERE monitor = %s AND hour BETWEEN %s AND %s;

-- name: totals
SELECT coalesce(sum(granted), 0), coalesce(sum(spent), 0),
    coalesce(sum(demand) FILTER (WHERE hour = %(hour)s AND written_at > now() - make_interval(secs => %(alive)s)), 0)
FROM judge_spend WHERE hour >= %(since)s AND hour < %(until)s;

-- name: grant
UPDATE judge_spend SET granted = granted + %s WHERE hour = %s AND monitor = %s RETURNING granted;

-- name: answers
SELECT key, body, extract(epoch FROM written_at)::float8 FROM answers
WHERE written_at > to_timestamp(%s) ORDER BY written_at DESC LIMIT %s;

-- name: put_result
INSERT INTO results (trace_id, revision, monitor, service, ended_at, outcome, verdicts)
VALUES (%s, %s, %s, %s, to_timestamp(%s), %s::jsonb, %s::jsonb)
ON CONFLICT (trace_id, monitor, revision) DO NOTHING;
