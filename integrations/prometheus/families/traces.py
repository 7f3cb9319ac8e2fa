"""Traces: how many arrive, how many are drawn, and how they end."""

from __future__ import annotations

from .family import counter, gauge

TRACES = counter(
    "sidejudge_traces_total", labels=("service", "reason"),
    help="Traces that ended, by how: each is counted once, with exactly one reason.",
    note="The outcomes: their sum plus `sidejudge_traces_open` is `sidejudge_traces_seen_total`.",
)  # fmt: skip
TRACES_SEEN = counter("sidejudge_traces_seen_total", "Traces that arrived, sampled or not.")
TRACES_KEPT = counter(
    "sidejudge_traces_kept_total", "Traces that sampling chose for evaluation.", labels=("service", "selection")
)
TRACES_OPEN = gauge("sidejudge_traces_open", "Traces that arrived and have not ended.")
SAMPLING_RATE = gauge(
    "sidejudge_sampling_rate_ratio",
    help="Base sampling rate of this moment: configured, or following the traffic; rules may grant more.",
)  # fmt: skip
LOAD_SHARE = gauge(
    "sidejudge_load_share_ratio",
    help="Share of the traces that sampling keeps that are judged: 1, and less while more close than can be judged.",
    note="The others end as `shed`; verdicts carry the true probability.",
)  # fmt: skip
JUDGING_BEHIND = gauge(
    "sidejudge_judging_behind_seconds",
    help="How long the oldest closed trace waits to be judged; 0 while none does.",
    note="Those that wait for a judge's answers are the queue `judge`.",
)  # fmt: skip
