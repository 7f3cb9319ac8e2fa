"""Trace: the spans of one trace in tree order, and why it was closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import TypeVar

from .below import with_answers_of_histories, with_failed_attempts, with_true_agents
from .notebook import trace_html
from .record import record
from .span import Completion, Span, SpanKind, Unread

_Held = TypeVar("_Held")
_LLM = SpanKind.LLM
_STEPS = frozenset({SpanKind.AGENT, SpanKind.CHAIN})
_UNKNOWN = "generic"
"""The dialect of spans whose client is not known."""
_CHECKING = frozenset({SpanKind.EVALUATOR, SpanKind.GUARDRAIL})


@record(frozen=True, slots=True, kw_only=True)
class Trace:
    """All spans of one trace id, deduplicated by span id, in order of start; made by ``of``.

    ``children`` are spans by parent id; under ``None`` stand the roots and the spans whose parent never came. ``root``
    is the span that has no parent; else the one marked as the topmost exported; ``None`` where neither exists.
    ``run_root`` is the root of the run: where the topmost span is a server's or a framework's that knows nothing of
    models, the one step below it; ``None`` without spans.
    ``from_top`` are the spans from the top down, the root first: a higher span represents more of the trace. ``models``
    are the model calls, including those around others, in order of start. ``missing_parents`` are the parent ids that
    never arrived, except parents of a marked topmost span. ``end_ns`` is the latest end of a span, in ns since the
    epoch.
    """

    trace_id: str
    spans: tuple[Span, ...]
    completion: Completion
    by_id: Mapping[str, Span] = field(repr=False, compare=False)
    children: Mapping[str | None, Sequence[Span]] = field(repr=False, compare=False)
    root: Span | None = field(repr=False, compare=False)
    run_root: Span | None = field(default=None, repr=False, compare=False)
    from_top: tuple[Span, ...] = field(repr=False, compare=False)
    models: tuple[Span, ...] = field(repr=False, compare=False)
    missing_parents: tuple[str, ...] = field(repr=False, compare=False)
    end_ns: int = field(repr=False, compare=False)

    @classmethod
    def of(cls, trace_id: str, spans: Sequence[Span], completion: Completion) -> Trace:
        """Sort and deduplicate: of two spans with one id the one that ended later, then the fuller one, stays.

        Between two that are equal in both, their contents decide, so that the order of arrival never matters.
        """
        by_id: dict[str, Span] = {}
        for span in spans:
            held = by_id.get(span.span_id)
            if held is None or _precedence(span) > _precedence(held):
                by_id[span.span_id] = span
        known = with_answers_of_histories(with_failed_attempts(with_true_agents(by_id)))
        ordered = sorted(known.values(), key=lambda s: (s.start_ns, -s.end_ns, s.span_id))
        children: dict[str | None, list[Span]] = {}
        missing: set[str] = set()
        for span in ordered:
            parent = span.parent_id
            if parent is not None and parent not in known:
                if not span.root_hint:
                    missing.add(parent)
                parent = None
            if parent in children:
                children[parent].append(span)
            else:
                children[parent] = [span]
        raising = _below_raising(children.get(None, ())) if missing else []
        missing.difference_update(span.parent_id for span in raising if span.parent_id)
        root = _root(ordered, children) or (next(iter(raising), None) if not missing else None)
        from_top = _from_top(ordered, children, root)
        return cls(
            trace_id=trace_id,
            spans=tuple(ordered),
            completion=completion,
            by_id=known,
            children=children,
            root=root,
            run_root=_run_root(root or next(iter(children.get(None, ())), None), from_top),
            from_top=tuple(from_top),
            models=tuple([span for span in ordered if span.kind is _LLM]),
            missing_parents=tuple(sorted(missing)) if missing else (),
            end_ns=max([span.end_ns for span in ordered], default=0),
        )

    def _repr_html_(self) -> str:
        return trace_html(self.trace_id, len(self.spans), self.children)

    @property
    def start_ns(self) -> int:
        """When its first span began, in ns since the epoch. The trace must have spans."""
        return self.spans[0].start_ns

    @property
    def tops(self) -> Sequence[Span]:
        """Spans without a known parent, earliest first."""
        return self.children.get(None, ())

    @property
    def levels(self) -> tuple[tuple[Span, ...], ...]:
        """Spans level by level, the root's first; spans that a cycle of parents makes unreachable come last."""
        found: list[tuple[Span, ...]] = []
        left = iter(self.from_top)
        size = len(self.tops)
        while level := tuple(islice(left, size)):
            found.append(level)
            size = sum([len(self.children.get(span.span_id, ())) for span in level])
        unreached = tuple(left)
        return (*found, unreached) if unreached else tuple(found)

    @property
    def complete(self) -> bool:
        """Whether it has a root, every named parent has arrived, and it was neither cut short nor torn.

        Only then may absence count against the application.
        """
        return self.root is not None and not self.missing_parents and self.completion not in ("pressure", "torn")

    def parent(self, span: Span) -> Span | None:
        """The span right above; None where there is none, or it never came."""
        return None if span.parent_id is None else self.by_id.get(span.parent_id)

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Parent, grandparent, … of ``span``; a cycle of parents ends the walk."""
        seen = {span.span_id}
        while span.parent_id is not None and span.parent_id not in seen:
            parent = self.by_id.get(span.parent_id)
            if parent is None:
                return
            seen.add(parent.span_id)
            yield parent
            span = parent


def from_above(trace: Trace, top: _Held, passed_on: Callable[[Span, _Held], _Held]) -> Mapping[str, _Held]:
    """By the id of each span what it has from above: ``top`` with nothing there, else what the span there passes on.

    Each span is read once: a trace may be ten thousand spans deep, and hold as many questions of what is above.
    """
    found: dict[str, _Held] = {}
    for span in trace.from_top:
        above = trace.parent(span)
        found[span.span_id] = top if above is None else passed_on(above, found.get(above.span_id, top))
    return found


def is_plain(span: Span) -> bool:
    """Whether a span is none of a run's own steps, but work around them: a request, a function of the application."""
    return span.kind is SpanKind.OTHER and span.agent is None


def speaking(trace: Trace) -> tuple[Span, ...]:
    """The model calls that may be asked and answer for the run: none by which it is checked, if there are others.

    A call below an evaluator or a guardrail judges what went in or came out.
    """
    if not any(span.kind in _CHECKING for span in trace.spans):
        return trace.models
    checks = from_above(trace, False, lambda span, upper: upper or span.kind in _CHECKING)
    return tuple([span for span in trace.models if not checks[span.span_id]]) or trace.models


def _precedence(span: Span) -> tuple[int, int, str]:
    return span.end_ns, len(span.provenance), repr(span)


def _root(ordered: Sequence[Span], children: Mapping[str | None, Sequence[Span]]) -> Span | None:
    for span in children.get(None, ()):
        if span.parent_id is None:
            return span
    return next((span for span in ordered if span.root_hint), None)


def _below_raising(tops: Sequence[Span]) -> list[Span]:
    """For each parent that raised, and whose span therefore never comes: the span below it that ended last."""
    last = {span.parent_id: span for span in sorted(tops, key=lambda span: span.end_ns)}
    return [span for span in last.values() if span.parent_raises and span.parent_id is not None]


def _run_root(top: Span | None, from_top: Sequence[Span]) -> Span | None:
    """The one step that stands for the run below a span that knows nothing of models; else that span."""
    if top is None or top.kind is not SpanKind.OTHER or _may_stand(top):
        return top
    steps: list[Span] = []
    within: set[str] = set()
    for span in from_top:
        if span.parent_id in within:
            within.add(span.span_id)
        elif _may_stand(span):
            within.add(span.span_id)
            steps.append(span)
        elif span.kind is _LLM:
            return top
    return steps[0] if len(steps) == 1 else top


def _may_stand(span: Span) -> bool:
    """Whether a span may stand for a whole run: an agent, a chain, or another step of a model-aware client."""
    if span.kind is not SpanKind.OTHER:
        return span.kind in _STEPS
    return span.dialect != _UNKNOWN or span.input is not None or span.output is not None


def _from_top(
    ordered: Sequence[Span], children: Mapping[str | None, Sequence[Span]], root: Span | None
) -> Sequence[Span]:
    found = list(children.get(None, ()))
    if found and found[0] is not root:
        found.sort(key=lambda span: span is not root)
    for span in found:  # it grows by what stands below; each span has one parent, so none comes twice
        if span.span_id in children:
            found += children[span.span_id]
    if len(found) < len(ordered):  # a cycle of parents keeps some from being reached
        reached = {span.span_id for span in found}
        found += [span for span in ordered if span.span_id not in reached]
    return found


def unread_counts(traces: Iterable[Trace]) -> list[tuple[Unread, int]]:
    """Each name once for each client, with the number of its spans; by client, the most frequent first.

    One name may have several shapes: the first represents them.
    """
    first: dict[tuple[str, str], Unread] = {}
    counted: Counter[tuple[str, str]] = Counter()
    for trace in traces:
        for unread in (each for span in trace.spans for each in span.unread):
            key = unread.client, unread.source
            first.setdefault(key, unread)
            counted[key] += 1
    return [(first[key], count) for key, count in sorted(counted.items(), key=lambda item: (item[0][0], -item[1]))]


def clock_corrections(trace: Trace) -> Mapping[str, int]:
    """The ns to add to a span's times to put it on the root's clock, by span id; a span without an entry needs none.

    Clocks of services are compared where a step of one service calls another. A called step begins no earlier than
    its caller. It ends no later either, if it took no longer than its caller and does not come from a queue, whose
    sender does not wait. Steps of the same service below it have the same clock.
    """
    found: dict[str, int] = {}
    if len({span.service for span in trace.spans}) < 2:
        return found
    for span in trace.from_top:
        above = trace.parent(span)
        if above is None:
            continue
        moved = found.get(above.span_id, 0)
        if span.service != above.service:
            late = max(0, above.start_ns + moved - span.start_ns)
            waited = not span.from_queue and span.end_ns - span.start_ns <= above.end_ns - above.start_ns
            early = min(0, above.end_ns + moved - span.end_ns) if waited else 0
            moved = late or early
        if moved:
            found[span.span_id] = moved
    return found
