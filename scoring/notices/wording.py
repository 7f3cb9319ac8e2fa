"""Wording: notices in plain words: what, how bad (with interval and n), since when, the worst traces, what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sidejudge.scoring.alerts.condition import Severity, Unit
from sidejudge.scoring.alerts.event import AlertEvent, Example
from sidejudge.scoring.alerts.explanation import TOOL, Explanation
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.alerts.quality import PASS_RATES

from .notice import DailyReportText, FailureLine, Notice, NoticeKind, ServiceDay, WeakMetric
from .text import NoticeText, TextLine, Wording, lasting, paragraphs, plain, when

MOST_IN_DIGEST = 20
_OF_BOTH_SIDES = (*PASS_RATES, "scenario_drift", "version_worse", "slice_worse", "metric_critical", "metric_warning")
"""Conditions with a two-sided interval, as pages show it; the bounds of others are one-sided, as their limits are."""
_OVER = {
    AlertTransition.RESOLVED: "Resolved",
    AlertTransition.UNKNOWN: "Not known any more",
    AlertTransition.EXPIRED: "Given up",
}


def report(notice: Notice, wording: Wording) -> NoticeText:
    """A notice in words."""
    if notice.kind is NoticeKind.TEST:
        return _test(notice)
    if notice.kind is NoticeKind.REPORT and notice.report is not None:
        return report_report(wording.report(notice.report))
    if notice.kind in {NoticeKind.DIGEST, NoticeKind.REFRESH}:
        return _digest(notice)
    if notice.kind is NoticeKind.GROUP:
        return _group(notice, wording)
    (event,) = notice.events
    return report_event(event, wording, again=notice.kind is NoticeKind.REMINDER)


def report_event(event: AlertEvent, wording: Wording, *, again: bool = False) -> NoticeText:
    """One event in words; ``again``: it was sent before and still fires."""
    return NoticeText(
        title=headline(event, again=again),
        paragraphs=paragraphs(_facts(event, wording), _examples(event, wording), _links(event, wording)),
    )


def headline(event: AlertEvent, *, again: bool = False) -> str:
    """What happened to which service, on one line."""
    what = _OVER.get(event.transition) or f"{'Still ' if again else ''}{event.severity.value}".capitalize()
    named = [plain(value, 80) for name, value in event.labels if name in {"service", "environment", "rubric"}]
    if _is_counted(event) and event.value is not None:
        *where, rubric = named
        failed = _failed(event.failures, 1 - event.value, event.n or 0)
        return f"{what}: {', '.join(where)}: {failed} fail {rubric}{_since_when(event)}"
    whom = place(event)
    return f"{what}: {event.title}" + (f" – {whom}" if whom else "")


def _is_counted(event: AlertEvent) -> bool:
    """Whether the title has the figures and their beginning."""
    return event.transition is AlertTransition.FIRING and event.condition in PASS_RATES


def _since_when(event: AlertEvent) -> str:
    """The period of the figure, when it began, and the figure before."""
    known, began_ns, from_ns = event.explained, event.changed_ns, event.measured_ns
    within = "" if from_ns is None else f" within {lasting(event.at_ns - from_ns).removeprefix('less than ')}"
    if began_ns is None:  # what failed since the alert itself began is not what broke
        return f"{within}; alert since {when(event.since_ns)}"
    was = ""
    if known is not None and known.before is not None:
        seen = ", on one monitor" if event.shared else ""
        was = f" ({_failed(known.before.failures, known.before.ratio, known.before.n)} in the day before{seen})"
    if from_ns == began_ns:
        return f" since {when(began_ns)}{was}"
    what = "the pass rate seems to be falling since" if event.condition == "pass_rate_change" else "it began about"
    return f"{within}; {what} {when(began_ns)}{was}"


def place(event: AlertEvent) -> str:
    """The labels of an event as one text: ``checkout, production, qa, tenant acme``; empty where it has none."""
    by = dict(event.labels).get("slice")
    named = (f"{_dimension(by)} {value}" if by and name == "value" else value for name, value in event.labels
             if name != "slice")  # fmt: skip
    return ", ".join(plain(each, 80) for each in named)


def quantity(value: float, unit: Unit) -> str:
    """A value with its unit."""
    if unit == "ratio":
        return f"{value:.1%}"
    if unit == "seconds":
        return f"{value:.1f} s"
    if unit == "bytes":
        return f"{value / 2**20:,.1f} MiB"
    return f"{value:,.4g}"


def _facts(event: AlertEvent, wording: Wording) -> Iterator[TextLine]:
    if (broke := what_broke(event, wording)) is not None:
        yield TextLine(text=broke)
    yield from (TextLine(text=line) for line in explained(event, wording))
    if event.shared and event.transition is AlertTransition.FIRING and (event.failure or event.explained):
        yield TextLine(
            text="Causes, what came before and failing traces are those of one monitor; the figures are the fleet's."
        )
    if event.transition is AlertTransition.UNKNOWN:
        yield TextLine(text="It fired. Now there is too little data to decide whether it still holds.")
    elif event.held:
        known = "It fires on, though what is known now does not show that it still holds"
        yield TextLine(text=f"{known}: {plain(event.stated)}.")
    elif event.transition is AlertTransition.EXPIRED:
        yield TextLine(text="It fired, and was not measured for so long that it is given up. It was not seen to end.")
    if (how_bad := measured(event)) is not None:
        yield TextLine(text=how_bad)
    # A sentence beside an interval would state a second figure; of a part of the traffic it states the others'.
    if event.stated and not event.held and (event.upper is None or "slice" in dict(event.labels)):
        stated = plain(event.stated)
        yield TextLine(text=f"{stated[:1].upper()}{stated[1:]}.")
    yield TextLine(text=since(event))
    if event.transition is AlertTransition.FIRING:
        yield TextLine(text=f"What it means: {event.meaning}.")


def what_broke(event: AlertEvent, wording: Wording) -> str | None:
    """What most of the latest failures have in common; ``None`` where that is unknown, or must not be sent."""
    if event.failure is None or event.transition is not AlertTransition.FIRING:
        return None
    reason = plain(wording.reason(event.failure))
    counted = f"{event.failure.count:,} of the latest {event.failure.of:,} failing traces"
    if event.explained is not None:
        same = (each for each in event.explained.causes if each.words == event.failure.reason)
        counted += "".join(f"; {_of_excess(each.share, event.explained)}" for each in same)
    return f"What broke: {reason} ({counted})." if reason else None


def explained(event: AlertEvent, wording: Wording) -> Iterator[str]:
    """Tools and failures beyond the usual, the affected part of the traffic, and what is new."""
    known = event.explained
    if known is None or event.transition is not AlertTransition.FIRING:
        return
    for cause in known.causes:
        if event.failure is not None and cause.words == event.failure.reason:
            continue  # that is what broke
        counted = f"{cause.count:,} failing traces, {_of_excess(cause.share, known)}"
        if cause.by == TOOL:
            yield f"Tool {plain(cause.value, 80)} failed in {counted}."
        else:
            words = f" ({plain(cause.words, 150)})" if wording.reasons and cause.words else ""
            yield f"Failure group {plain(cause.value, 80)}{words}: {counted}."
    for each in known.slices:
        yield (
            f"Where: {_dimension(each.by)} {plain(each.value, 80)}: {each.pass_ratio:.2f} pass (n = {each.n:,}); "
            f"others {each.others:.2f} (n = {each.others_n:,}). It has {_of_excess(each.share, known)}."
        )
    for new in known.new:
        yield f"New then: {new.by} {plain(new.value, 80)}, first seen {when(new.first_ns)}."


def _failed(failures: int | None, ratio: float, n: int) -> str:
    """The number of failed verdicts or, where sampling was uneven, their share of all traffic."""
    if abs(ratio * n - (round(ratio * n) if failures is None else failures)) < 1e-6:
        return f"{round(ratio * n):,} of {n:,}"
    return f"{ratio:.1%} (n = {n:,})"


def _dimension(by: str) -> str:
    return plain(by.removeprefix("metadata."), 80)


def _of_excess(share: float, known: Explanation) -> str:
    beyond = "the failures" if known.before is None else "the failures beyond what was usual"
    return f"{'all' if share >= 0.995 else f'{share:.0%}'} of {beyond}"


def measured(event: AlertEvent) -> str | None:
    """How bad it is, with the interval and its confidence, n and the limit; ``None`` when there is no value."""
    if event.value is None:
        return None
    bounds = []
    if event.lower is not None and event.upper is not None:
        least, most = quantity(event.lower, event.unit), quantity(event.upper, event.unit)
        together = f"between {least} and {most} with 95 % confidence"
        each = f"at least {least}, at most {most}, each with 95 % confidence"
        bounds = [together if event.condition in _OF_BOTH_SIDES else each]
    elif event.upper is not None:
        bounds = [f"at most {quantity(event.upper, event.unit)} with 95 % confidence"]
    bounds += [f"n = {event.n:,}"] if event.n is not None else []
    within = f" ({', '.join(bounds)})" if bounds else ""
    limit = f"; the limit is {quantity(event.limit, event.unit)}" if event.limit is not None else ""
    last = event.transition in {AlertTransition.UNKNOWN, AlertTransition.EXPIRED}
    known = "Last measured" if last else "Measured"
    if event.measured_ns is not None:
        known += f"{',' if last else ''} since {when(event.measured_ns)}"
    passes = " pass" if event.condition in PASS_RATES else ""
    return f"{known}: {quantity(event.value, event.unit)}{passes}{within}{limit}."


def since(event: AlertEvent) -> str:
    """When it began, how long it has lasted, and the change detector's estimate of its beginning."""
    length = lasting(event.at_ns - event.since_ns)
    if event.transition in {AlertTransition.RESOLVED, AlertTransition.EXPIRED}:
        return f"It began {when(event.since_ns)} and lasted {length}."
    changed_ns = None if _is_counted(event) else event.changed_ns
    began = f" It probably began about {when(changed_ns)}." if changed_ns is not None else ""
    return f"Alert since {when(event.since_ns)}, for {length}.{began}"


def _examples(event: AlertEvent, wording: Wording) -> Iterator[TextLine]:
    if event.examples and event.transition is AlertTransition.FIRING:
        yield TextLine(text="The worst of the failing traces:")
        for number, example in enumerate(event.examples, 1):
            yield example_line(number, example, wording)


def example_line(number: int, example: Example, wording: Wording) -> TextLine:
    """One failing trace: its composite, its reason unless reasons are left out, and its link."""
    name = plain(example.trace_id, 64)
    scored = "no score" if example.composite is None else f"scored {example.composite:.4g}"
    reason = f": {plain(given)}" if (given := wording.reason(example)) else ""
    return TextLine(text=f"{number}. {name}, {scored}{reason}", link=wording.trace(example.trace_id), link_text="open")


def _links(event: AlertEvent, wording: Wording) -> Iterator[TextLine]:
    if event.transition in {AlertTransition.FIRING, AlertTransition.UNKNOWN}:
        yield _runbook(event, wording)
    if (dashboard := wording.dashboard(event.labels)) is not None:
        yield TextLine(text="How it looks:", link=dashboard, link_text="dashboard")
    if wording.instance is not None:
        yield TextLine(text=f"Reported by {plain(wording.instance, 100)}.")
    elif wording.host is not None and "service" not in dict(event.labels):
        yield TextLine(text=f"Reported by the monitor on {plain(wording.host, 100)}.")


def _runbook(event: AlertEvent, wording: Wording) -> TextLine:
    link = wording.runbook(event.runbook)
    text = "What to do:" if link is not None else f"What to do: runbook {event.runbook}"
    return TextLine(text=text, link=link, link_text=event.runbook)


def _test(notice: Notice) -> NoticeText:
    words = "Nothing is wrong: somebody asked sidejudge to send this, to see whether it arrives."
    return NoticeText(
        title="Test from sidejudge", paragraphs=(((TextLine(text=words), TextLine(text=f"{when(notice.at_ns)}."))),)
    )


def _group(notice: Notice, wording: Wording) -> NoticeText:
    """A paragraph for each event, the worst first: what happened, how bad it is, and the trace that shows it best."""
    order = (AlertTransition.FIRING, AlertTransition.UNKNOWN, AlertTransition.EXPIRED, AlertTransition.RESOLVED)
    events = sorted(notice.events, key=lambda each: (order.index(each.transition), list(Severity).index(each.severity)))
    kinds = Counter(_OVER.get(each.transition, each.severity.value).lower() for each in events)
    counted = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    return NoticeText(
        title=f"{len(events)} alerts: {counted}", paragraphs=paragraphs(*(_in_short(each, wording) for each in events))
    )


def _in_short(event: AlertEvent, wording: Wording) -> Iterator[TextLine]:
    reported = f"{headline(event)}. {measured(event) or plain(event.stated)}"
    if (broke := what_broke(event, wording)) is not None:
        reported = f"{reported} {broke}"
    yield TextLine(text=reported, link=wording.runbook(event.runbook), link_text=event.runbook)
    if event.examples and event.transition is AlertTransition.FIRING:
        yield example_line(1, event.examples[0], wording)


def _digest(notice: Notice) -> NoticeText:
    shown = notice.events[:MOST_IN_DIGEST]
    lines = [TextLine(text=f"{headline(event)}. {measured(event) or plain(event.stated)}") for event in shown]
    if len(notice.events) > len(shown):
        lines.append(TextLine(text=f"… and {len(notice.events) - len(shown)} more."))
    number = len(notice.events)
    title = f"Digest: {number} less urgent alert{'' if number == 1 else 's'}"
    return NoticeText(title=title, paragraphs=(tuple(lines),))


def report_report(report: DailyReportText) -> NoticeText:
    """A day in words."""
    firing = [TextLine(text=f"Firing now: {plain(title)}") for title in report.firing]
    rest = [TextLine(text=f"… and {report.more} more.")] if report.more else []
    courses = [TextLine(text=_course(course)) for course in report.courses]
    lacks = [] if report.day_ns is None else [TextLine(text=_lacks(report.day_ns, report.begin_ns))]
    share = [] if report.share_of is None else [TextLine(text=_share(report.share_of))]
    weakest = [TextLine(text="Metrics furthest outside their acceptable band:")] if report.weakest else []
    failures = [TextLine(text="Most frequent failures:")] if report.failures else []
    money = [] if report.cost_usd is None else [TextLine(text=_money(report.cost_usd, report.unpriced))]
    agreed = [
        TextLine(text=f"The judge agrees with people on {plain(each.rubric)}: kappa {each.kappa:.2f} (n = {each.n:,}).")
        for each in report.agreements
    ]
    return NoticeText(
        title=f"Report: {when(report.begin_ns)} to {when(report.end_ns)}",
        paragraphs=paragraphs(
            firing or [TextLine(text="No alert fires.")],
            [*(courses or [TextLine(text="There was no verdict.")]), *rest, *share, *lacks],
            [*weakest, *(TextLine(text=_weak(each)) for each in report.weakest)],
            [*failures, *(TextLine(text=_failing(each)) for each in report.failures)],
            [*money, *agreed],
        ),
    )


def _money(usd: float, unpriced: Sequence[str]) -> str:
    if not unpriced:
        return f"The judge cost ${usd:,.2f}."
    names = f"no price is known of {plain(', '.join(unpriced))}"
    return f"What the judge cost is not known: {names}." if usd == 0 else f"The judge cost ${usd:,.2f}; {names}."


def _share(monitor: str) -> str:
    return f"Verdicts, failures and cost are those of monitor {plain(monitor, 100)} alone; the fleet has others."


def _lacks(day_ns: int, begin_ns: int) -> str:
    kept = "it is not kept any more (store.retention, store.max_bytes)"
    return f"What came from {when(day_ns)} to {when(begin_ns)} is missing: {kept}."


def _course(course: ServiceDay) -> str:
    where = ", ".join(plain(name, 80) for name in (course.service, course.environment, course.rubric))
    status = course.status.value.replace("_", " ")
    counts = f"{course.passed:,} passed, {course.failed:,} failed, {course.incomplete:,} incomplete"
    open_ = _unanswered(course)
    if course.pass_ratio is None or course.lower is None or course.upper is None:
        return f"{where}: {status}; no pass ratio ({counts}){open_}"
    bounds = f"between {course.lower:.1%} and {course.upper:.1%}"
    return f"{where}: {status}; {course.pass_ratio:.1%} pass ({bounds}; {counts}){open_}"


def _unanswered(course: ServiceDay) -> str:
    """How many traces the figures of a day lack, for which nobody could be asked."""
    parts = (
        (course.unanswered, "in an outage of a judge or embeddings"),
        (course.unreached, "because the budget of the judge was spent"),
        (course.waiting, "wait for an outage to end"),
    )
    stated = ", ".join(f"{number:,} {why}" for number, why in parts if number)
    return f"; no answer: {stated}; what passes is of the rest" if stated else ""


def _failing(group: FailureLine) -> str:
    what = f"{plain(group.metric, 80)} of {plain(group.rubric, 80)}"
    counts = f"{group.count:,}" + ("" if group.before is None else f", the day before {group.before:,}")
    words = f": {plain(group.words)}" if group.words else ""
    example = f", such as trace {plain(group.examples[0], 64)}" if group.examples else ""
    return f"{what}: {counts} (group {group.group}{example}){words}"


def _weak(weak: WeakMetric) -> str:
    where = ", ".join(plain(name, 80) for name in (weak.service, weak.environment, weak.rubric))
    side = "at least" if weak.higher_is_better else "at most"
    return (
        f"{plain(weak.metric)} of {where}: {weak.mean:.4g} (n = {weak.n:,}), acceptable is {side} {weak.acceptable:g}"
    )
