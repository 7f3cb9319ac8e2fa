"""Listed trace: what listings show of a trace before its contents are read, and whether it need be read at all.

Left out is only what the sampler would leave out with certainty once the trace is whole: the same threshold on the
same randomness, and of rules on content those that a listing can refuse (name, tags, level, environment). Undecided
traces pass, and the sampler decides. So the probabilities of verdicts stay true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sidejudge.integrations.langfuse.normalise import NO_ENVIRONMENT, span_id
from sidejudge.integrations.langfuse.observations import Window, instant_ns
from sidejudge.integrations.langfuse.pages import Row
from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.ingest.sampler import Sampler
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.trace.loop_guard import evaluator_traffic, is_own

_MOST_TAGS: Final = 50
"""Most tags and environments of a trace that are read."""
_LONGEST: Final = 800
"""Characters of an id; Langfuse takes no longer ones."""


@dataclass(slots=True, kw_only=True)
class ListedTrace:
    """One trace that is not taken yet, or that has grown since.

    ``spans`` are its rows' ids, ``changed_ns`` when the latest was seen here.
    ``written_ns`` is when Langfuse wrote the latest. ``taken`` are ids that were taken before. ``disagreed`` counts
    readings that found other rows than were expected, ``failures`` those that failed while others succeeded (there had
    been ``others_read`` of them at the last); after either the next one is not before ``retry_ns``. ``failed`` is None
    where no row shows its level, as in a legacy listing.
    """

    trace_id: str
    changed_ns: int
    start_ns: int
    last_ns: int
    taken: frozenset[bytes] = frozenset()
    written_ns: int = 0
    end_ns: int = 0
    spans: set[bytes] = field(default_factory=set)
    rooted: bool = False
    failed: bool | None = None
    root_name: str | None = None
    root_ns: int = 0
    root_trace_name: str | None = None
    root_environment: str | None = None
    trace_name: str | None = None
    tags: tuple[str, ...] = ()
    environments: frozenset[str] = frozenset()
    session_id: str | None = None
    disagreed: int = 0
    failures: int = 0
    others_read: int = 0
    retry_ns: int = 0

    @classmethod
    def of(cls, trace_id: str, now_ns: int, taken: frozenset[bytes] = frozenset()) -> ListedTrace:
        """A trace without any row seen so far."""
        return cls(trace_id=trace_id, changed_ns=now_ns, start_ns=1 << 63, last_ns=0, taken=taken)

    def add(self, rows: Iterable[Row], now_ns: int) -> None:
        """Add the rows that a listing has of it."""
        for row in rows:
            span = bytes.fromhex(span_id(str(row.get("id"))))
            started = instant_ns(row.get("startTime")) or now_ns  # what has no time is as old as what is seen of it
            ended = instant_ns(row.get("endTime")) or started
            written = max(instant_ns(row.get("updatedAt")) or 0, instant_ns(row.get("createdAt")) or 0, ended)
            if span not in self.spans or written > self.written_ns:
                self.changed_ns = now_ns
            self.spans.add(span)
            self.start_ns, self.last_ns = min(self.start_ns, started), max(self.last_ns, started)
            self.end_ns, self.written_ns = max(self.end_ns, ended), max(self.written_ns, written)
            self._describe(row)

    def _describe(self, row: Row) -> None:
        if is_root(row):
            self.rooted = True
            self._describe_root(row)
        if (level := row.get("level")) is not None:
            self.failed = bool(self.failed) or level == "ERROR"
        self.trace_name = self.trace_name or _text(row.get("traceName"))
        self.session_id = self.session_id or _text(row.get("sessionId"))
        tags = row.get("tags")
        if isinstance(tags, list):
            self.tags = tuple(dict.fromkeys((*self.tags, *map(str, tags[:_MOST_TAGS]))))[:_MOST_TAGS]
        environment = _text(row.get("environment"))
        if environment and len(self.environments) < _MOST_TAGS:
            self.environments |= {environment}

    def _describe_root(self, row: Row) -> None:
        """Where rows differ, the root speaks for the trace; of several roots the first."""
        started = instant_ns(row.get("startTime")) or 0
        if self.root_name is not None and started > self.root_ns:
            return
        self.root_ns, self.root_name = started, _text(row.get("name"))
        self.root_trace_name, self.root_environment = _text(row.get("traceName")), _text(row.get("environment"))

    @property
    def grown(self) -> bool:
        """Whether there are rows that were not taken before."""
        return not self.spans <= self.taken

    def settled(self, now_ns: int, settle_ns: int, rootless_ns: int, behind_ns: int) -> bool:
        """Whether nothing was added for long enough; without a root it takes longer.

        ``behind_ns`` is how far Langfuse's clock may be behind ours: what it wrote is as much younger.
        """
        quiet_ns = now_ns - min(self.changed_ns, self.written_ns + behind_ns if self.written_ns else self.changed_ns)
        return now_ns >= self.retry_ns and quiet_ns >= (settle_ns if self.rooted else max(settle_ns, rootless_ns))

    def around(self, reach_ns: int) -> Window:
        """The time window in which to look for all rows: ``reach_ns`` before and after the rows that were listed.

        What began before the listed times shows no root there, and may have begun at any time.
        """
        from_ns = max(0, self.start_ns - reach_ns) if self.rooted else 0
        return Window(from_ns=from_ns, to_ns=max(self.end_ns, self.last_ns) + reach_ns)

    def case(self) -> Case:
        """The case that rules on content are matched with already."""
        environments = (self.root_environment, *sorted(self.environments))
        named = next((each for each in environments if each not in (None, NO_ENVIRONMENT)), None)
        return Case(
            case_id=self.trace_id,
            model_output=None,
            name=self.root_trace_name or self.trace_name or self.root_name,
            tags=self.tags,
            environment=named,
            error="error" if self.failed else None,
        )


def is_root(row: Row) -> bool:
    """Whether a row is a root that has ended; in a legacy listing only the trace's age shows it."""
    if "endTime" not in row:
        return True
    top = row.get("isRootObservation") is True or not row.get("parentObservationId")
    return top and bool(row.get("endTime") or row.get("type") == "EVENT")


def grouped(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by their trace; those without one are left out. Of an id that is longer than any, the beginning counts."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if key := trace_of(row):
            found.setdefault(key, []).append(row)
    return found


def trace_of(row: Row) -> str:
    """The trace of a row; empty for one without."""
    trace_id = row.get("traceId")
    if not isinstance(trace_id, str):
        return ""
    return trace_id[:_LONGEST].encode("utf-8", "replace").decode()  # half a surrogate pair is no text to a store


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


_UNKNOWN: Final[Mapping[str, object]] = {
    "service": (), "task": (), "metadata": {}, "asked": (), "feedback": None, "latency_ms": None,
}  # fmt: skip
"""Conditions that a listing cannot answer, in the form in which they hold for everything."""


def left_out_at_once(sampler: Sampler, trace_id: bytes, listed: ListedTrace) -> EndReason | None:
    """Why a trace will not be read, as far as its first rows show; None when it may be read."""
    if excluded(listed):
        return EndReason.EXCLUDED
    return None if sampler.admits(trace_id) else EndReason.SAMPLED_OUT


def left_out_once_settled(sampler: Sampler, trace_id: bytes, listed: ListedTrace) -> EndReason | None:
    """Why a trace will not be read, once its listing is complete and rules on content can be matched; else None."""
    if excluded(listed):
        return EndReason.EXCLUDED
    kept = sampler.may_keep(trace_id, lambda rule: may_match(rule.match, listed))
    return None if kept else EndReason.SAMPLED_OUT


def may_match(match: MatchSection, listed: ListedTrace) -> bool:
    """Whether a condition may hold for the trace, as far as its listing shows."""
    unknown = {**_UNKNOWN, "level": None} if listed.failed is None else _UNKNOWN
    return match.model_copy(update=unknown).matches(listed.case())


def excluded(listed: ListedTrace) -> bool:
    """Whether a trace is evaluation itself: of Langfuse's judges, of ours, or of an experiment."""
    seen = listed.environments or {None}
    return any(evaluator_traffic(None, environment, tags=listed.tags) is not None for environment in seen)


def all_own(spans: Sequence[RawSpan]) -> bool:
    """Whether nothing of a trace is an application's."""
    return all(
        is_own(service=service if isinstance(service := span.resource.get("service.name"), str) else None,
               scope=span.scope_name)
        for span in spans
    )  # fmt: skip
