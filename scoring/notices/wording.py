"""Wording: notices in plain words: what, how bad with interval and n, since when, the worst traces, what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from scoring.alerts.condition import Severity, Unit
from scoring.alerts.event import AlertEvent, Example
from scoring.alerts.lifecycle import Turn

from .daily_report import Course, Report, WeakMetric
from .notice import Kind, Notice
from .text import Line, Told, Wording, lasting, paragraphs, plain, when

MOST_IN_DIGEST = 20
_OVER = {
    Turn.RESOLVED: "Resolved",
    Turn.UNKNOWN: "Not known any more",
    Turn.EXPIRED: "Given up",
}


def tell(notice: Notice, wording: Wording) -> Told:
    """A notice in words."""
    if notice.kind is Kind.TEST:
        return _test(notice)
    if notice.kind is Kind.REPORT and notice.report is not None:
        return tell_report(notice.report)
    if notice.kind in {Kind.DIGEST, Kind.REFRESH}:
        return _digest(notice)
    if notice.kind is Kind.GROUP:
        return _group(notice, wording)
    (event,) = notice.events
    return tell_event(event, wording, again=notice.kind is Kind.REMINDER)


def tell_event(event: AlertEvent, wording: Wording, *, again: bool = False) -> Told:
    """One event in words; ``again``: it was told before and still is so."""
    return Told(
        title=headline(event, again=again),
        paragraphs=paragraphs(
            _facts(event),
            _examples(event, wording),
            [_runbook(event, wording)] if event.turn in {Turn.FIRING, Turn.UNKNOWN} else [],
        ),
    )


def headline(event: AlertEvent, *, again: bool = False) -> str:
    """What happened, and to whom, on one line."""
    what = _OVER.get(event.turn) or f"{'Still ' if again else ''}{event.severity.value}".capitalize()
    whom = place(event)
    return f"{what}: {event.title}" + (f" – {whom}" if whom else "")


def place(event: AlertEvent) -> str:
    """The labels of an event as one text: ``checkout, production, qa``; empty where it has none."""
    return ", ".join(plain(value, 80) for _, value in event.labels)


def quantity(value: float, unit: Unit) -> str:
    """A value with its unit."""
    if unit == "ratio":
        return f"{value:.1%}"
    if unit == "seconds":
        return f"{value:.1f} s"
    if unit == "bytes":
        return f"{value / 2**20:,.1f} MiB"
    return f"{value:,.4g}"


def _facts(event: AlertEvent) -> Iterator[Line]:
    if event.turn is Turn.UNKNOWN:
        yield Line(text="It fired, and there is too little to go by now to say whether it still is so.")
    elif event.turn is Turn.EXPIRED:
        yield Line(text="It fired, and nothing was heard of it for so long that it is let go. It was not seen to end.")
    if (how_bad := measured(event)) is not None:
        yield Line(text=how_bad)
    if event.said:
        said = plain(event.said)
        yield Line(text=f"{said[:1].upper()}{said[1:]}.")
    yield Line(text=since(event))
    if event.turn is Turn.FIRING:
        yield Line(text=f"What it means: {event.meaning}.")


def measured(event: AlertEvent) -> str | None:
    """How bad it is, with the interval, n and the limit; ``None`` when there is no value."""
    if event.value is None:
        return None
    bounds = []
    if event.lower is not None and event.upper is not None:
        bounds = [f"between {quantity(event.lower, event.unit)} and {quantity(event.upper, event.unit)}"]
    elif event.upper is not None:
        bounds = [f"at most {quantity(event.upper, event.unit)}"]
    bounds += [f"n = {event.n:,}"] if event.n is not None else []
    within = f" ({', '.join(bounds)})" if bounds else ""
    limit = f"; the limit is {quantity(event.limit, event.unit)}" if event.limit is not None else ""
    known = "Last measured" if event.turn in {Turn.UNKNOWN, Turn.EXPIRED} else "Measured"
    return f"{known}: {quantity(event.value, event.unit)}{within}{limit}."


def since(event: AlertEvent) -> str:
    """Since when, for how long, and when the change detector thinks that it began."""
    length = lasting(event.at_ns - event.since_ns)
    if event.turn in {Turn.RESOLVED, Turn.EXPIRED}:
        return f"It began {when(event.since_ns)} and lasted {length}."
    began = f" It probably began about {when(event.changed_ns)}." if event.changed_ns is not None else ""
    return f"Since {when(event.since_ns)}, for {length}.{began}"


def _examples(event: AlertEvent, wording: Wording) -> Iterator[Line]:
    if event.examples and event.turn is Turn.FIRING:
        yield Line(text="The worst of the failing traces:")
        for number, example in enumerate(event.examples, 1):
            yield example_line(number, example, wording)


def example_line(number: int, example: Example, wording: Wording) -> Line:
    """One failing trace: its composite, its reason unless reasons are left out, and its link."""
    name = plain(example.trace_id, 64)
    scored = "no score" if example.composite is None else f"scored {example.composite:.4g}"
    reason = f": {plain(example.reason)}" if wording.reasons and example.reason else ""
    return Line(text=f"{number}. {name}, {scored}{reason}", link=wording.trace(example.trace_id), link_text="open")


def _runbook(event: AlertEvent, wording: Wording) -> Line:
    link = wording.runbook(event.runbook)
    text = "What to do:" if link is not None else f"What to do: runbook {event.runbook}"
    return Line(text=text, link=link, link_text=event.runbook)


def _test(notice: Notice) -> Told:
    words = "Nothing is wrong: somebody asked sidejudge to send this, to see whether it arrives."
    return Told(title="Test from sidejudge", paragraphs=(((Line(text=words), Line(text=f"{when(notice.at_ns)}."))),))


def _group(notice: Notice, wording: Wording) -> Told:
    """A paragraph for each event, the worst first: what, how bad, and the trace that shows it best."""
    order = (Turn.FIRING, Turn.UNKNOWN, Turn.EXPIRED, Turn.RESOLVED)
    events = sorted(notice.events, key=lambda each: (order.index(each.turn), list(Severity).index(each.severity)))
    kinds = Counter(_OVER.get(each.turn, each.severity.value).lower() for each in events)
    counted = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    return Told(
        title=f"{len(events)} alerts: {counted}", paragraphs=paragraphs(*(_in_short(each, wording) for each in events))
    )


def _in_short(event: AlertEvent, wording: Wording) -> Iterator[Line]:
    told = f"{headline(event)}. {measured(event) or plain(event.said)}"
    yield Line(text=told, link=wording.runbook(event.runbook), link_text=event.runbook)
    if event.examples and event.turn is Turn.FIRING:
        yield example_line(1, event.examples[0], wording)


def _digest(notice: Notice) -> Told:
    shown = notice.events[:MOST_IN_DIGEST]
    lines = [Line(text=f"{headline(event)}. {measured(event) or plain(event.said)}") for event in shown]
    if len(notice.events) > len(shown):
        lines.append(Line(text=f"… and {len(notice.events) - len(shown)} more."))
    number = len(notice.events)
    title = f"Digest: {number} less urgent alert{'' if number == 1 else 's'}"
    return Told(title=title, paragraphs=(tuple(lines),))


def tell_report(report: Report) -> Told:
    """A day in words."""
    firing = [Line(text=f"Firing now: {plain(title)}") for title in report.firing]
    rest = [Line(text=f"… and {report.more} more.")] if report.more else []
    courses = [Line(text=_course(course)) for course in report.courses]
    weakest = [Line(text="Metrics furthest outside their acceptable band:")] if report.weakest else []
    money = [] if report.cost_usd is None else [Line(text=f"The judge cost ${report.cost_usd:,.2f}.")]
    agreed = [
        Line(text=f"The judge agrees with people on {plain(each.rubric)}: kappa {each.kappa:.2f} (n = {each.n:,}).")
        for each in report.agreements
    ]
    return Told(
        title=f"Report: {when(report.begin_ns)} to {when(report.end_ns)}",
        paragraphs=paragraphs(
            firing or [Line(text="No alert fires.")],
            [*courses, *rest] or [Line(text="There was no verdict.")],
            [*weakest, *(Line(text=_weak(each)) for each in report.weakest)],
            [*money, *agreed],
        ),
    )


def _course(course: Course) -> str:
    where = ", ".join(plain(name, 80) for name in (course.service, course.environment, course.rubric))
    status = course.status.value.replace("_", " ")
    counts = f"{course.passed:,} passed, {course.failed:,} failed, {course.incomplete:,} incomplete"
    if course.pass_ratio is None or course.lower is None or course.upper is None:
        return f"{where}: {status}; no pass ratio ({counts})"
    bounds = f"between {course.lower:.1%} and {course.upper:.1%}"
    return f"{where}: {status}; {course.pass_ratio:.1%} pass ({bounds}; {counts})"


def _weak(weak: WeakMetric) -> str:
    where = ", ".join(plain(name, 80) for name in (weak.service, weak.environment, weak.rubric))
    side = "at least" if weak.higher_is_better else "at most"
    return (
        f"{plain(weak.metric)} of {where}: {weak.mean:.4g} (n = {weak.n:,}), acceptable is {side} {weak.acceptable:g}"
    )
