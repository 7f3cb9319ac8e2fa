"""Sources: what is read from Langfuse, shared with a fleet, and judged again after a late reference."""

from __future__ import annotations

from .family import counter, gauge

PULL_ROWS = counter(
    "sidejudge_pull_rows_total",
    help="Observations that were read from Langfuse, each as often as it was read.",
    note="0 where `sources.langfuse` is not configured.",
)  # fmt: skip
PULL_TRACES = counter(
    "sidejudge_pull_traces_total",
    help="Traces that were taken from Langfuse; one that has grown since is taken again.",
    note="Those that were not read, being not drawn or not to be judged, are in `sidejudge_traces_total` alone.",
)  # fmt: skip
PULL_ERRORS = counter(
    "sidejudge_pull_errors_total", labels=("reason",),
    help="Readings that ended early. What they left is read by a later one.",
)  # fmt: skip
PULL_LAG = gauge(
    "sidejudge_pull_lag_seconds",
    help="For how long what is in Langfuse was not listed, or what is whole was not read. Absent until it was read.",
)  # fmt: skip
PULL_LAST_SUCCESS = gauge(
    "sidejudge_pull_last_success_timestamp_seconds",
    help="When Langfuse was last read without an error. Absent until it was.",
)  # fmt: skip
FLEET_ROUNDS = counter(
    "sidejudge_fleet_rounds_total", labels=("outcome",),
    help="Rounds of what monitors share in the fleet's database, by how they ended.",
    note="`ok`; `away`: not reached; `cut`: ended early by the database; `failed`: by an error of our own. Absent "
    "where `fleet` is not configured.",
)  # fmt: skip
FLEET_LAST_SUCCESS = gauge(
    "sidejudge_fleet_last_success_timestamp_seconds",
    help="When a round with the fleet's database was last whole. Absent until one was.",
)  # fmt: skip
FLEET_MONITORS = gauge(
    "sidejudge_fleet_monitors",
    help="Monitors of the fleet that are there, as this one saw in its latest round; 1 before the first.",
)  # fmt: skip
FLEET_LEASES = gauge("sidejudge_fleet_leases", "Leases that this monitor holds: what it alone of the fleet may do.")
FLEET_CLOCK_OFFSET = gauge(
    "sidejudge_fleet_clock_offset_seconds",
    help="By how much this monitor's clock is ahead of the fleet's database's; negative when it is behind.",
    note="As the latest round found it; absent until one did. Beyond 60 s either way verdicts stand in other minutes "
    "than those of other monitors, and the log and the status page name it.",
)  # fmt: skip
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
)  # fmt: skip
