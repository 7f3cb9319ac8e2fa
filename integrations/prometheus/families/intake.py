"""Intake: requests, spans and log records that arrive, what is read elsewhere, and what goes on upstream."""

from __future__ import annotations

from .family import counter, gauge

REQUESTS_REFUSED = counter(
    "sidejudge_requests_refused_total", labels=("code",),
    help="OTLP requests that were answered with an error, by HTTP status.",
    note="gRPC's by the HTTP status that means the same. `413` is an exporter whose batches are too large, `429` a "
    "sender beyond `sources.otlp.requests_per_second`, `503` overload. The first of each kind is logged with its "
    "cause.",
)  # fmt: skip
REQUESTS_DROPPED = counter(
    "sidejudge_requests_dropped_total", "OTLP requests with metrics, which are answered as taken and not looked at."
)
SPANS_RECEIVED = counter("sidejudge_spans_received_total", "Spans that arrived, sampled or not.")
SPANS_HANDED_OVER = counter(
    "sidejudge_spans_handed_over_total",
    help="Spans that came from a monitor that was ending.",
    note="The monitor that they were sent to first has counted them as received; here they are not.",
)
SPANS_REJECTED = counter(
    "sidejudge_spans_rejected_total", labels=("reason",),
    help="Spans that were refused; the response to the sender counts them.",
)  # fmt: skip
SPANS_IGNORED = counter(
    "sidejudge_spans_ignored_total", labels=("reason",),
    help="Spans that were taken and not used.",
    note="`duplicate`: the trace had them already, a client sent again; `late`: they came after `assembly.late`; "
    "`own`: a monitor sends them about itself; `too_large`: their trace is as large as one may be; `shed`: it was not "
    "taken under load. Spans of traces that are not sampled are not in it.",
)  # fmt: skip
TRAFFIC_SUSPECTED = gauge(
    "sidejudge_traffic_suspected", labels=("kind",),
    help="1 while something about the traffic makes verdicts fewer or other than the configuration asks for, else 0.",
    note="`skewed_sampling`: trace ids are not uniformly random; `split_traces`: roots or parents of many traces never "
    "arrive; `rootless_traces`: their callers' spans do not; `disbelieved_claims`: traces state a sampler's threshold "
    "(`ot=th`) that nobody declared, or that does not fit; `silent_routes`: a route of the configuration matches none "
    "of the traces. `/v1/status` has cause and remedy.",
)  # fmt: skip
BEGUN_BY_CALLERS = counter(
    "sidejudge_traces_begun_by_callers_total",
    help="Traces below a span of another process that did not arrive: the caller of the application chose their ids.",
    note="As far as SDKs mark remote parents (`flags`). At a rate below 1 such a caller may have all of his traces "
    "judged, or none; `sampling.randomness_key` takes that from him.",
)
CLAIMS_DISBELIEVED = counter(
    "sidejudge_claims_disbelieved_total", labels=("reason",),
    help="Traces and resources that claim to stand for more traces than is believed.",
    note="`undeclared`: they state `ot=th` and `sampling.trust_upstream` is not set; `contradicted`: their randomness "
    "does not reach it; `below_floor`: it is below the declared floor; `share`: one trace would hold more than "
    "`max_share` of its service; `unsigned`: a handover without a signature that is known. None of them changes a "
    "weight.",
)  # fmt: skip
LOG_RECORDS_RECEIVED = counter("sidejudge_log_records_received_total", "Log records that arrived, sampled or not.")
LOG_RECORDS_REJECTED = counter(
    "sidejudge_log_records_rejected_total",
    help="Log records that could not be read; the response to the sender counts them.",
)
LOG_RECORDS_IGNORED = counter(
    "sidejudge_log_records_ignored_total", labels=("reason",),
    help="Log records that were taken and not used.",
    note="`untraced`: they name no trace and span; `plain`: they are no events, but lines of a log; `late`: they came "
    "after `assembly.late`; `own`: a monitor sends them about itself; `too_large`: their trace is as large as "
    "one may be. Events of traces that are not sampled are not in it.",
)  # fmt: skip
FORWARDED = counter(
    "sidejudge_forwarded_requests_total", labels=("signal",),
    help="Requests that went on upstream.",
    note="Only where `forward` is configured, like the four below.",
)  # fmt: skip
FORWARD_ANSWERS = counter(
    "sidejudge_forwarded_answers_total", "Upstream's answers, by class of their HTTP status.", labels=("code",)
)
FORWARD_FAILED = counter(
    "sidejudge_forwarded_requests_failed_total", labels=("reason",),
    help="Requests to which upstream gave no answer, or half of one.",
    note="`connect`: it could not be reached; `timeout`; `reset`: the connection broke; `protocol`: it does not speak "
    "HTTP; `busy`: too many requests were under way. The first of each kind is logged with its cause.",
)  # fmt: skip
FORWARD_UNJUDGED = counter(
    "sidejudge_forwarded_requests_unjudged_total", labels=("reason",),
    help="Requests that went on upstream and of which nothing was taken in here.",
    note="`too_large`, `memory` (too many large ones at once), `undecodable`, `unsupported` (its encoding), "
    "`overloaded` (the store), `error`; `upstream_refused`: upstream answered 4xx, so the trace is nowhere; "
    "`upstream_failed`: it answered 5xx, 408 or 429, and what the application sends again is judged.",
)  # fmt: skip
FORWARD_WITHHELD = counter(
    "sidejudge_forwarded_requests_unauthorized_total",
    help="Requests that went on upstream without `forward.authorization` and `forward.headers`.",
    note="A web page may have made them: a foreign `Origin` or `Host`, or a content type of forms. The log has the "
    "cause of the first.",
)
FORWARD_KEPT = counter(
    "sidejudge_forwarded_requests_kept_total", labels=("signal",),
    help="Requests that upstream did not take, and that were kept on disk to be sent later.",
    note="Only where `forward.buffer` is configured, like the three below.",
)  # fmt: skip
FORWARD_KEPT_ENDED = counter(
    "sidejudge_forwarded_requests_kept_ended_total", labels=("outcome",),
    help="Requests that were kept and are so no more.",
    note="`sent`: upstream took it; `refused`: upstream refused it for good; `given_up`: it failed eight times while "
    "others were taken. The first of the latter two is logged with its cause.",
)  # fmt: skip
FORWARD_UNKEPT = counter(
    "sidejudge_forwarded_requests_not_kept_total", labels=("reason",),
    help="Requests that upstream did not take and that could not be kept: the application was given the failure.",
    note="`full`: `forward.buffer` is used up; `disk`: the file cannot be written; `memory`: too many large ones at "
    "once.",
)  # fmt: skip
FORWARD_BUFFER_BYTES = gauge(
    "sidejudge_forward_buffer_bytes",
    help="What the requests that are kept for upstream take of the disk; `forward.buffer` is the most.",
    note='Their number is `sidejudge_queue_items{queue="forward"}`.',
)
PULL_ROWS = counter(
    "sidejudge_pull_rows_total",
    help="Observations that were read from Langfuse, each as often as it was read.",
    note="0 where `sources.langfuse` is not configured.",
)
PULL_TRACES = counter(
    "sidejudge_pull_traces_total",
    help="Traces that were taken from Langfuse; one that has grown since is taken again.",
    note="Those that were not read, being not drawn or not to be judged, are in `sidejudge_traces_total` alone.",
)
PULL_ERRORS = counter(
    "sidejudge_pull_errors_total", labels=("reason",),
    help="Readings that ended early. What they left is read by a later one.",
)  # fmt: skip
PULL_LAG = gauge(
    "sidejudge_pull_lag_seconds",
    help="For how long what is in Langfuse was not listed, or what is whole was not read. Absent until it was read.",
)
PULL_LAST_SUCCESS = gauge(
    "sidejudge_pull_last_success_timestamp_seconds",
    help="When Langfuse was last read without an error. Absent until it was.",
)
FLEET_ROUNDS = counter(
    "sidejudge_fleet_rounds_total", labels=("outcome",),
    help="Rounds of what monitors share in the fleet's database, by how they ended.",
    note="`ok`; `away`: not reached; `cut`: ended early by the database; `failed`: by an error of our own. Absent "
    "where `fleet` is not configured.",
)  # fmt: skip
FLEET_LAST_SUCCESS = gauge(
    "sidejudge_fleet_last_success_timestamp_seconds",
    help="When a round with the fleet's database was last whole. Absent until one was.",
)
FLEET_MONITORS = gauge(
    "sidejudge_fleet_monitors",
    help="Monitors of the fleet that are there, as this one saw in its latest round; 1 before the first.",
)
FLEET_LEASES = gauge("sidejudge_fleet_leases", "Leases that this monitor holds: what it alone of the fleet may do.")
FLEET_CLOCK_OFFSET = gauge(
    "sidejudge_fleet_clock_offset_seconds",
    help="By how much this monitor's clock is ahead of the fleet's database's; negative when it is behind.",
    note="As the latest round found it; absent until one did. Beyond 60 s either way verdicts stand in other minutes "
    "than those of other monitors, and the log and the status page name it.",
)
BELATED = counter(
    "sidejudge_belated_traces_total", labels=("outcome",),
    help="Traces that were judged again because a reference changed after their spans were let go, by what came of it.",
    note="`revised`: other verdicts; `unchanged`: the same. Absent where `references` are in the traces alone.",
)  # fmt: skip
BELATED_FAILED = counter(
    "sidejudge_belated_attempts_failed_total", labels=("reason",),
    help="Attempts at judging a trace again that came to nothing; its verdict stands, and the trace's page says why.",
    note="`gone`, `incomplete`, `too_large`, `unreadable` (in Langfuse), `other_rubrics` (would judge it now), "
    "`judge_failed`, `error`, `forgotten` (its verdict was let go for lack of room), `no_langfuse` (is configured).",
)  # fmt: skip
BELATED_GIVEN_UP = gauge(
    "sidejudge_belated_given_up",
    help="Traces whose verdict stands though their reference is another by now, and that are not tried any more.",
)
