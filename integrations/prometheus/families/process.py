"""Process: queues, destinations, and what is running."""

from __future__ import annotations

from .family import counter, gauge, histogram, info

LAG_S = (0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Bounds of the evaluation lag in seconds: from the default grace of assembly to its default deadline."""

EVALUATION_LAG = histogram(
    "sidejudge_evaluation_lag_seconds", labels=("service",), buckets=LAG_S,
    help="Time from when a trace's last span came to its verdicts, by the monitor's clock.",
    note="Appears with the first verdict of a service.",
)  # fmt: skip
QUEUE_ITEMS = gauge("sidejudge_queue_items", "Items that wait.", labels=("queue",))
QUEUE_OLDEST = gauge(
    "sidejudge_queue_oldest_timestamp_seconds", labels=("queue",),
    help="When the oldest item that waits was put there. Absent while nothing waits.",
)  # fmt: skip
SPOOL_BYTES = gauge("sidejudge_spool_bytes", "Size of the working store on disk.")
CONTENTS_BYTES = gauge(
    "sidejudge_kept_contents_bytes",
    "Contents of ended traces that are kept in the working store (`store.keep_contents`).",
)
EXPORTS = counter(
    "sidejudge_exports_total", labels=("destination",),
    help="What was handed to a destination, accepted or not: verdicts, to `langfuse` scores, to `otel_events` spans "
    "and events.",
    note="What is handed over again counts again.",
)  # fmt: skip
EXPORTS_FAILED = counter(
    "sidejudge_exports_failed_total", labels=("destination", "reason"),
    help="What a destination did not accept, by the reason, or accepted and did not store (`not_stored`).",
    note="`overtaken`: another monitor wrote a later version of the same score, which stays. `hidden`: the score is "
    "older than anything that Langfuse shows.",
)  # fmt: skip
EXPORT_LAST_SUCCESS = gauge(
    "sidejudge_exports_last_success_timestamp_seconds", labels=("destination",),
    help="When a destination last accepted something. Absent until it has.",
)  # fmt: skip
EXPORTS_UNSEEN = gauge(
    "sidejudge_exports_unseen", labels=("destination",),
    help="Scores that a destination accepted and that were not read back from it yet.",
)  # fmt: skip
EXPORTS_HELD = gauge(
    "sidejudge_exports_held", labels=("destination",),
    help="Scores that are held back, for upstream (`forward.url`) has not taken their trace.",
    note="They are written once it has; after a day they are let go "
    '(`sidejudge_exports_failed_total{reason="no_trace"}`). `forward.buffer` keeps what upstream does not take.',
)  # fmt: skip
EXPORTS_UNARRIVED = gauge(
    "sidejudge_exports_unarrived", labels=("destination",),
    help="Scores that a destination accepted and does not show: it shows an earlier writing, or none.",
    note="Counted from 45 s after it accepted them, until they are read back or given up; they are written again.",
)  # fmt: skip
EXPORTS_DEAD = gauge(
    "sidejudge_exports_dead", labels=("destination",),
    help="What was given up: refused, or not delivered for too long. `/v1/status` says why.",
    note="Notices are tried again at the next start; scores by `sidejudge export replay` (`export dead` lists them); "
    "own telemetry is gone.",
)  # fmt: skip
CONNECTION_STATE = gauge(
    "sidejudge_connection_state", labels=("connection", "state"),
    help="1 for the state of each destination, source and place of references that is configured, 0 for the others.",
    note="`connection` is a destination, `sources.langfuse`, `fleet.database`, or a place of references such as "
    "`dataset golden`. `starting`: not tried yet; `ok`; `waiting`: too much waits here; `retrying`: waiting helps; "
    "`stopped`: only a person can help (keys, address, rights, a name).",
)  # fmt: skip
BUILD_INFO = info("sidejudge_build_info", "What is running; always 1.", labels=("version", "revision", "python"))
CONFIG_INFO = info("sidejudge_config_info", "Which configuration is in force; always 1.", labels=("fingerprint",))
CONFIG_VALID = gauge(
    "sidejudge_config_valid",
    help="Whether the configuration is in force. At 0, requests are forwarded and not judged: the log says why.",
    note="Where only forwarding could start for another reason (a damaged store), `sidejudge_build_info` is missing.",
)
CONFIG_RELOADED = gauge(
    "sidejudge_config_last_reload_successful",
    help="Whether the latest reload of the configuration put it into force; 1 before the first.",
)
