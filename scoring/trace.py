"""Trace: the spans that belong together, in tree order, and why it was taken as finished."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from .span import Completion, Span, SpanKind


@dataclass(frozen=True, kw_only=True)
class Trace:
    """All spans of one trace id, deduplicated by span id, in order of start.

    ``complete`` is true when the trace has a root, every parent that was named has arrived, and it was not closed
    under pressure: only then may absence be held against the application.
    """

    trace_id: str
    spans: tuple[Span, ...]
    completion: Completion

    @classmethod
    def of(cls, trace_id: str, spans: Sequence[Span], completion: Completion) -> Trace:
        """Sort and deduplicate: of two spans with one id the one that ended later, then the fuller one, stays.

        Between two that are alike in both, their contents decide, so that the order of arrival never does.
        """
        best: dict[str, Span] = {}
        for span in spans:
            held = best.get(span.span_id)
            if held is None or _precedence(span) > _precedence(held):
                best[span.span_id] = span
        ordered = sorted(best.values(), key=lambda s: (s.start_ns, -s.end_ns, s.span_id))
        return cls(trace_id=trace_id, spans=tuple(ordered), completion=completion)

    @property
    def start_ns(self) -> int:
        """When its first span began, in ns since the epoch. Of a trace with spans."""
        return self.spans[0].start_ns

    @cached_property
    def end_ns(self) -> int:
        """When the span ended that ended last, in ns since the epoch. Of a trace with spans."""
        return max([span.end_ns for span in self.spans])

    @cached_property
    def by_id(self) -> dict[str, Span]:
        return {span.span_id: span for span in self.spans}

    @cached_property
    def children(self) -> dict[str | None, tuple[Span, ...]]:
        """Spans by parent id; under ``None`` stand the roots and the spans whose parent never came."""
        found: dict[str | None, list[Span]] = {}
        known = self.by_id
        for span in self.spans:
            parent = span.parent_id if span.parent_id in known else None
            if parent in found:
                found[parent].append(span)
            else:
                found[parent] = [span]
        return {parent: tuple(spans) for parent, spans in found.items()}

    @property
    def tops(self) -> tuple[Span, ...]:
        """Spans without a known parent, earliest first."""
        return self.children.get(None, ())

    @cached_property
    def root(self) -> Span | None:
        """The span that has no parent; else the one marked as the topmost exported; ``None`` where neither exists."""
        for span in self.tops:
            if span.parent_id is None:
                return span
        return next((span for span in self.spans if span.root_hint), None)

    @cached_property
    def levels(self) -> tuple[tuple[Span, ...], ...]:
        """Spans level by level, the root's first; what a cycle of parents keeps from being reached comes last."""
        found: list[tuple[Span, ...]] = []
        left = iter(self.from_top)
        size = len(self.tops)
        while level := tuple(islice(left, size)):
            found.append(level)
            size = sum([len(self.children.get(span.span_id, ())) for span in level])
        unreached = tuple(left)
        return (*found, unreached) if unreached else tuple(found)

    @cached_property
    def from_top(self) -> tuple[Span, ...]:
        """Spans from the top down: what stands higher speaks for more of the trace."""
        found = list(self.tops)
        if found and found[0] is not self.root:
            found.sort(key=lambda span: span is not self.root)
        for span in found:  # it grows by what stands below; each span has one parent, so none comes twice
            found.extend(self.children.get(span.span_id, ()))
        if len(found) < len(self.spans):  # a cycle of parents keeps some from being reached
            reached = {span.span_id for span in found}
            found.extend([span for span in self.spans if span.span_id not in reached])
        return tuple(found)

    @cached_property
    def models(self) -> tuple[Span, ...]:
        """The model calls, those around others included, in order of start."""
        return tuple([span for span in self.spans if span.kind is SpanKind.LLM])

    @cached_property
    def missing_parents(self) -> tuple[str, ...]:
        """Ids that spans name as parent and that never arrived, apart from parents of a marked topmost span."""
        return tuple(
            sorted({span.parent_id for span in self.tops if span.parent_id is not None and not span.root_hint})
        )

    @property
    def complete(self) -> bool:
        if self.completion == "pressure":
            return False
        return self.root is not None and not self.missing_parents

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


def _precedence(span: Span) -> tuple[int, int, str]:
    return span.end_ns, len(span.provenance), repr(span)
