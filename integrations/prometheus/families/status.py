"""Status: the pass ratio of each window with its bounds, the change detectors, and alerts."""

from __future__ import annotations

from .family import PROCESS, WHO, Label, counter, gauge

SLICED: tuple[Label, ...] = (*WHO, "slice", "value")

PASS_RATIO = gauge(
    "sidejudge_pass_ratio", labels=WHO,
    help=f"Estimated share of all traffic that passes. {PROCESS}",
    note="Absent, not 0, while the window holds no verdict.",
)  # fmt: skip
PASS_LOWER_RATIO = gauge(
    "sidejudge_pass_lower_ratio", f"Lower bound of the pass ratio; with the upper one 95 %. {PROCESS}", labels=WHO
)
PASS_UPPER_RATIO = gauge(
    "sidejudge_pass_upper_ratio", f"Upper bound of the pass ratio; with the lower one 95 %. {PROCESS}", labels=WHO
)
EFFECTIVE_SAMPLES = gauge(
    "sidejudge_effective_samples", labels=WHO,
    help=f"Kish's effective sample size of the window, divided by the design effect. {PROCESS}",
)  # fmt: skip
DESIGN_EFFECT = gauge(
    "sidejudge_design_effect", labels=WHO,
    help="Factor by which verdicts say less because those of one session (`alerts.cluster`) fail together; 1 or more.",
    note="Recording rules multiply each process's increase of the squared weights by it before they sum them: over all "
    "processes the effective sample size is weight² / that sum.",
)  # fmt: skip
PASS_WORST_RATIO = gauge(
    "sidejudge_pass_worst_ratio", f"Pass ratio if every incomplete verdict had failed. {PROCESS}", labels=WHO
)
PASS_BEST_RATIO = gauge(
    "sidejudge_pass_best_ratio", f"Pass ratio if every incomplete verdict had passed. {PROCESS}", labels=WHO
)
STATUS = gauge(
    "sidejudge_status", labels=(*WHO, "status"),
    help="1 for the status in force, 0 for the others. This process's view, for display.",
)  # fmt: skip
UNANSWERED = gauge(
    "sidejudge_unanswered_traces", labels=WHO,
    help="How many traces stand for those without an answer: they wait while a judge or embeddings are out of reach, "
    "or got none within the window in an outage or because the budget was spent. This process's own.",
    note="Absent while there are none. A rule that compares a pass ratio counts them both ways.",
)  # fmt: skip
BEHIND = gauge(
    "sidejudge_behind_traces", labels=(*WHO, "like"),
    help="How many traces stand for those that a slow judge has not answered within the window: `passed` and `failed`, "
    "by what it answered. This process's own.",
    note="Absent while there are none, and where nothing is decided without the judge.",
)  # fmt: skip
LAST_VERDICT = gauge(
    "sidejudge_last_verdict_timestamp_seconds", labels=WHO,
    help="When the last verdict that passed or failed was reached. This process's view, or its fleet's.",
    note="Absent before the first. `SidejudgeTrafficStopped` says when it is longer ago than is plausible.",
)  # fmt: skip
WINDOW_REACH = gauge(
    "sidejudge_window_reach_seconds", labels=WHO,
    help="How far back the window of the status reaches: further than `alerts.window` where traffic is thin, "
    "to the fall alone while an alarm stands on one.",
)  # fmt: skip
STATUS_SINCE = gauge(
    "sidejudge_status_since_timestamp_seconds", labels=WHO,
    help="Since when the status is in force. This process's view, for display.",
)  # fmt: skip
PASS_RATIO_THRESHOLD = gauge(
    "sidejudge_pass_ratio_threshold", labels=("rubric", "level"),
    help="Pass ratio below which the level is reached, from the configuration.",
)  # fmt: skip
CHANGE_SCORE = gauge(
    "sidejudge_change_score_ratio", labels=WHO,
    help="Score of the change detector (CUSUM) as a share of its limit. This process's view, for display.",
    note="At 1 the early warning is raised; it lasts until the score is back at 0.",
)  # fmt: skip
CHANGE_SINCE = gauge(
    "sidejudge_change_timestamp_seconds", labels=WHO,
    help="When the pass ratio began to fall, as the change detector estimates it.",
    note="Absent while there is no early warning.",
)  # fmt: skip
DRIFT_SCORE = gauge(
    "sidejudge_scenario_drift_score_ratio", labels=WHO,
    help="Score of the detector of drift from the scenario (CUSUM) as a share of its limit. This process's view.",
    note="Of rubrics that check a scenario. At 1 the early warning is raised; it lasts until the score is back at 0.",
)  # fmt: skip
DRIFT_SINCE = gauge(
    "sidejudge_scenario_drift_timestamp_seconds", labels=WHO,
    help="When runs began to depart from their scenario more often, as the detector estimates it.",
    note="Absent while there is no early warning. `sidejudge_workflow_violations_total` counts the ways.",
)  # fmt: skip
SLICE_PASS_RATIO = gauge(
    "sidejudge_slice_pass_ratio", labels=SLICED,
    help=f"Share of a part of the traffic that passes, such as a version's or a tenant's (`alerts.slices`). {PROCESS}",
    note="Of the parts whose alert is raised, and of the five that come nearest to it; as verdicts were first. The "
    "value `__other__` is all that are too many to be kept apart.",
)  # fmt: skip
SLICE_OTHERS_PASS_RATIO = gauge(
    "sidejudge_slice_others_pass_ratio", f"Share of all other traffic that passes meanwhile. {PROCESS}", labels=SLICED
)
SLICE_WORSE_SINCE = gauge(
    "sidejudge_slice_worse_timestamp_seconds", labels=SLICED,
    help="Since when a part of the traffic seems to be worse than was promised, or a version worse than the others.",
    note="Absent while its alert is not raised.",
)  # fmt: skip
ALERTS = gauge(
    "sidejudge_alerts", labels=("alert", "severity", "stage"),
    help="Alerts of this process, by condition and stage.",
    note="`/v1/alerts` says what each is about.",
)  # fmt: skip
ALERT_REPORTED = gauge(
    "sidejudge_alert_reported", labels=("alert", *SLICED, "metric"),
    help="1 for an alert on a service that was sent and is not over, 0 for one that fires and is not sent, because a "
    "more severe one explains it or did.",
    note="Absent where there is no alert. The rules go by it where the status alone does not show what the process "
    "sends: after a recovery, and where nothing is known.",
)  # fmt: skip
ALERT_EVENTS = counter("sidejudge_alert_events_total", "Changes of alerts.", labels=("alert", "turn"))
ALERT_LIMIT = gauge(
    "sidejudge_alert_limit", labels=("alert",),
    help="Where an alert begins, in its unit, from the configuration.",
    note="Of the pass rates it is the threshold of rubrics without one of their own; see "
    "`sidejudge_pass_ratio_threshold`. Absent where no single number rules.",
)  # fmt: skip
