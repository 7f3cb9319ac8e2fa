"""Looks: the status of the whole fleet, look by look, as ``scoring.status.hysteresis`` has it in process.

An evaluation of the group is a look. *Worse* takes ``needed`` of the last ``looks`` looks, the latest among them, as in
process; once entered it lasts while so many are bad and the interval does not lie above its threshold. *Better* is left
to ``keep_firing_for``: Prometheus keeps an alert for the declared hold, and knows no recovery margin.
"""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.status import Status

from . import recordings as r
from .promql import ON_RUBRIC, UNANSWERED, WAITING, behind, fleet, held_back, over_processes, sent, waiting
from .rule import RecordingRule, prometheus_duration

_CODES = tuple((text.replace(" ", "_"), code) for code, text in reversed(r.STATUS_CODES.items()))
"""A number for each status; of several processes the largest holds."""
_ALARMS = (("critical", 2, "== 2"), ("warning", 1, "> 0"))
"""Level, code, and how a status that is so bad compares."""
_AT = "{service=%q,environment=%q,rubric=%q}"


def looks(declared: Declaration) -> list[RecordingRule]:
    """Whether each look was below a threshold, how many of the last were, and the status that this amounts to."""
    if is_reported(declared):
        figure = RecordingRule(r.FIGURE, over_processes(_of_worse(f.PASS_RATIO.name), operation="min"))
        return [_in_process(), figure, _known(), _held()]
    return [
        *(_below(declared, level) for level in r.LEVELS),
        *(_counted(declared, level) for level in r.LEVELS),
        _status(declared),
        _known(),
        _held(),
    ]


def breaching(declared: Declaration, level: str) -> str:
    """An expression that answers the pass ratio of every place that is at this level or worse.

    With too little data the last known status is kept for a day, because silence is not recovery. Where rules use
    the processes' reports, a place that a process holds back after a recovery is left out, and one whose alert it has
    sent and not ended stays.
    """
    worse = {"warning": 1, "critical": 2}[level]
    known = f"{r.STATUS} >= {worse} or {r.HELD} >= {worse}"
    if not is_reported(declared):
        return f"last_over_time({r.pass_ratio(r.window_of(declared))}[{r.DAY}])\nand\n({known})"
    alert = f"pass_rate_{level}"
    # The process may look further back than a window that is recorded here: its own figure is the one to show.
    shown = f"last_over_time({r.FIGURE}[{r.DAY}])"
    return f"{shown}\nand\n(\n  {known}\n  or {sent(alert)} == 1\n)\nunless\n{held_back(alert)}"


def interval(declared: Declaration) -> str:
    """A template of Prometheus: the bounds of the pass ratio that ``breaching`` answers, where they are known."""
    window = r.window_of(declared)
    least, most = f"{r.lower(window)}{_AT}", f"{r.upper(window)}{_AT}"
    if is_reported(declared):
        least, most = _of_worse(f"{f.PASS_LOWER_RATIO.name}{_AT}"), _of_worse(f"{f.PASS_UPPER_RATIO.name}{_AT}")
    labels = "$labels.service $labels.environment $labels.rubric"
    return "".join(
        f"{{{{ with printf `{query}` {labels} | query }}}}, {words} "
        f"{{{{ . | first | value | humanizePercentage }}}}{confidence}{{{{ end }}}}"
        for query, words, confidence in (
            (f"min ({least})", "at least", ""),
            (f"max ({most})", "at most", " (with 95 % confidence)"),
        )
    )


def is_reported(declared: Declaration) -> bool:
    """Whether rules use the processes' reports: PromQL can neither follow verdicts one by one nor read labels."""
    return declared.policy.mode == "adaptive" or declared.corrected != "none"


def _below(declared: Declaration, level: str) -> RecordingRule:
    """1 or 0; absent where there is too little data or too few failures, as a finding in process is.

    Absent, too, where traces without an answer could lift the ratio to the threshold, or bring it below, or those that
    wait for a slow judge do if they are like what it answered.
    """
    window, policy = r.window_of(declared), declared.policy
    bounded = policy.mode == "bound"
    compared = r.upper(window) if bounded else f"round({r.pass_ratio(window)}, 1e-9)"
    against = f'{ON_RUBRIC} {r.THRESHOLD}{{level="{level}"}}'
    guard = f"\nand\n({r.failures(window)} >= {policy.min_failures} or {compared} >= {against})" if bounded else ""
    enough = f"\nand\n{r.effective(window)} >= {policy.min_samples:g}"
    failed, passed = r.failed_weight(window), f"{r.weight(window)} - {r.failed_weight(window)}"
    ratio = f"1 - {failed} / {r.weight(window)}"
    whole, all_ = (f"({r.weight(window)} + {waiting(*series)})" for series in (UNANSWERED, WAITING))
    lowest, highest = f"({passed}) / {whole}", f"1 - {failed} / {whole}"
    lower = f"({passed} + {waiting(behind('passed'))}) / {all_}"
    higher = f"1 - ({failed} + {waiting(behind('failed'))}) / {all_}"
    is_open = "\nor\n".join(
        f"{low} < {against}\nand\n{high} >= {against}"
        for low, high in ((lowest, highest), (lower, ratio), (ratio, higher))
    )
    is_open = f"\nunless\n({is_open})"
    return RecordingRule(r.BELOW, f"({compared} < bool {against}){guard}{enough}{is_open}", labels={"level": level})


def _counted(declared: Declaration, level: str) -> RecordingRule:
    return RecordingRule(
        r.LOOKS_BELOW, f'sum_over_time({r.BELOW}{{level="{level}"}}[{_reach(declared)}])', labels={"level": level}
    )


def _status(declared: Declaration) -> RecordingRule:
    """A number for each status; with missing looks, only statuses that the others prove."""
    window = r.window_of(declared)
    enough = f"{r.effective(window)} >= {declared.policy.min_samples:g}"
    warned, below = _without_level(r.LOOKS_BELOW, "warning"), _without_level(r.BELOW, "warning")
    seen = f'sum without (level) (count_over_time({r.BELOW}{{level="warning"}}[{_reach(declared)}]))'
    healthy = f"{below} == 0\nand\n({warned} == 0 or {seen} - {warned} >= {declared.rule.needed})\nand\n{enough}"
    # Where no verdict ever passed or failed there are no samples: a process still knows the window, by the incomplete.
    undecided = fleet(f.STATUS, "status", where=f'status="{Status.INSUFFICIENT_DATA.value}"', operation="max")
    worse = "".join(f"{_worse(declared, *alarm)}\nand\n{enough}\nor\n" for alarm in _ALARMS)
    return RecordingRule(
        r.STATUS, f"{_silent()}\nor\n{worse}{healthy}\nor\n{r.effective(window)} * 0 - 1\nor\n0 - ({undecided} > 0)"
    )


def _worse(declared: Declaration, level: str, code: int, so_bad: str) -> str:
    """The code where enough looks were so bad, and the latest is, or the status was and its interval allows it."""
    counted, below = _without_level(r.LOOKS_BELOW, level), _without_level(r.BELOW, level)
    above = f'{r.lower(r.window_of(declared))} > {ON_RUBRIC} {r.THRESHOLD}{{level="{level}"}}'
    return (
        f"{code} * ({counted} >= bool {declared.rule.needed}) > 0\n"
        f"and\n({below} == 1 or {r.STATUS} {so_bad} unless {above})"
    )


def _without_level(record: str, level: str) -> str:
    return f'sum without (level) ({record}{{level="{level}"}})'


def _silent() -> str:
    """-2 where all processes that know the place say that verdicts no longer come."""
    return f"-2 * {_of_any('=')}\nunless\n{_of_any('!=')}"


def _of_any(matcher: str) -> str:
    where = f'status{matcher}"{Status.NO_DATA.value}"'
    return over_processes(f"{f.STATUS.name}{{{where}}} == 1", "status", operation="max")


def _known() -> RecordingRule:
    """The status where it can be known; the last known one outlives the traffic."""
    return RecordingRule(r.KNOWN, f"{r.STATUS} >= 0")


def _held() -> RecordingRule:
    """The last status within a day, while the present one is unknown."""
    return RecordingRule(r.HELD, f"last_over_time({r.KNOWN}[{r.DAY}])\nunless\n{r.STATUS} >= 0")


def _reach(declared: Declaration) -> str:
    # Half an interval less than the looks take: no look more is in it, whether its edges belong to a range or not.
    return prometheus_duration(declared.rule.looks * declared.look_ns - declared.look_ns // 2)


def _of_worse(series: str) -> str:
    """A gauge of the processes that report a status worse than healthy."""
    worse = f'{f.STATUS.name}{{status=~"{Status.WARNING.value}|{Status.CRITICAL.value}"}}'
    return f"{series} and ignoring (status) ({worse} == 1)"


def _in_process() -> RecordingRule:
    """The worst status that any process reports."""
    codes = "\n  or\n  ".join(f'{code} * ({f.STATUS.name}{{status="{each}"}} == 1)' for each, code in _CODES)
    return RecordingRule(r.STATUS, over_processes(f"\n  {codes}\n", "status", operation="max"))
