"""Judge: what judges and the embedding model are asked, answer and cost."""

from __future__ import annotations

from .family import counter, gauge, histogram

JUDGING_S = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)
"""Bounds of the judge's durations in seconds: up to twice the default time-out."""

JUDGE_REQUESTS = counter(
    "sidejudge_judge_requests_total", labels=("model",),
    help="Requests sent to a judge, attempts that were repeated among them.",
)  # fmt: skip
JUDGE_REQUESTS_FAILED = counter(
    "sidejudge_judge_requests_failed_total", labels=("model", "reason"),
    help="Requests that brought no answer, or none that could be read (`parse_error`).",
)  # fmt: skip
JUDGE_REPAIRS = counter(
    "sidejudge_judge_repairs_total", labels=("model", "outcome"),
    help="Questions that a judge was asked again because its answer was not valid, by what came of it.",
    note="`answered` or `unanswered`.",
)  # fmt: skip
JUDGE_SHAPES = counter(
    "sidejudge_judge_shapes_total", labels=("model", "kind"),
    help="Answers of a judge that were read though they were not in the form that was asked for, by what was unusual.",
    note="`doctor` names it too.",
)  # fmt: skip
JUDGE_FILTERED = counter(
    "sidejudge_judge_filtered_total", labels=("model",),
    help="Requests that a content filter of the provider stopped, or that the model refused to judge.",
)  # fmt: skip
JUDGE_ESTIMATED = counter(
    "sidejudge_judge_estimated_total", labels=("model",),
    help="Requests whose tokens and cost are estimated, for the provider gave no account of them.",
)  # fmt: skip
JUDGE_DURATION = histogram(
    "sidejudge_judge_duration_seconds", labels=("model",), buckets=JUDGING_S,
    help="Time that a request to a judge took, successful or not.",
)  # fmt: skip
JUDGE_TOKENS = counter(
    "sidejudge_judge_tokens_total", "Tokens that the judge's provider counted.", labels=("model", "direction")
)
JUDGE_COST = counter(
    "sidejudge_judge_cost_usd_total", "US dollars that judging cost, as far as a price is known.", labels=("model",)
)
JUDGE_CACHE_HITS = counter(
    "sidejudge_judge_cache_hits_total", "Questions to the judge that were answered by the cache."
)
JUDGE_CACHE_MISSES = counter(
    "sidejudge_judge_cache_misses_total", "Questions to the judge that the cache did not know."
)
JUDGE_FLAGS = counter(
    "sidejudge_judge_flags_total", "Judged answers that are doubtful, by why.", labels=("model", "flag")
)
JUDGE_BREAKER = gauge(
    "sidejudge_judge_breaker_state", labels=("model", "state"),
    help="1 for the state that the circuit breaker of a judge is in, 0 for the others.",
    note="`/v1/status` says why it is open.",
)  # fmt: skip
JUDGE_BUDGET_SPENT = gauge(
    "sidejudge_judge_budget_spent_usd", labels=("period",),
    help="US dollars spent on judging since the running hour or day began.",
)  # fmt: skip
JUDGE_BUDGET_LIMIT = gauge(
    "sidejudge_judge_budget_limit_usd", labels=("period",),
    help="US dollars that may be spent on judging in an hour or a day. Absent without a budget.",
)  # fmt: skip
JUDGE_SHARE = gauge(
    "sidejudge_judge_share_ratio", labels=("priority",),
    help="Share of the cases that need the judge that its budget can pay for now.",
    note="Below 1 the others end as `over_budget`; verdicts carry the true probability.",
)  # fmt: skip
JUDGE_IN_FLIGHT = gauge(
    "sidejudge_judge_in_flight", "Cases that are being judged. Those that wait for it are the queue `judge`."
)
EMBEDDING_TEXTS = counter("sidejudge_embedding_texts_total", "Texts that the embedding model was given.")
EMBEDDING_TEXTS_FAILED = counter(
    "sidejudge_embedding_texts_failed_total", "Texts in calls of the embedding model that failed."
)
EMBEDDING_DURATION = histogram(
    "sidejudge_embedding_duration_seconds", buckets=JUDGING_S,
    help="Time that a call of the embedding model took, for all texts that were gathered for it.",
)  # fmt: skip
EMBEDDING_CACHE_HITS = counter("sidejudge_embedding_cache_hits_total", "Texts whose vectors were in the cache.")
EMBEDDING_CACHE_MISSES = counter(
    "sidejudge_embedding_cache_misses_total", "Texts whose vectors the cache did not know."
)
