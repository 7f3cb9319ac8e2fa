"""Trace details: all that is known of one trace, for the API and for its page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from sidejudge.integrations.otlp.wire.encode import encode_spans
from sidejudge.integrations.otlp.wire.kept import PackedSpansError
from sidejudge.integrations.otlp.wire.tracestate import probability, random_bits, threshold
from sidejudge.integrations.store.pulled import PendingRevisions
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.deliver.kept_contents import Holding, held_spans
from sidejudge.monitor.evaluate.pipeline import Pipeline
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.ingest.outcomes import EndReason, TraceOutcomes
from sidejudge.scoring.result.reason import outline
from sidejudge.scoring.rubrics.open_verdict import open_details, open_verdict
from sidejudge.scoring.trace.time_units import iso_time
from sidejudge.scoring.verdict.documents import LateReferenceDocument, SamplingDocument, TraceDocument, VerdictDocument

from .explain import happened, why
from .inspect import Inspected, inspect_spans

if TYPE_CHECKING:
    from sidejudge.dashboards.pages.trace_page import Absence, TracePage

_LISTED = (
    "trace_id", "closed_ns", "reason", "service", "environment", "name", "session_id", "kind", "completion", "revision",
    "route", "routes", "excluded", "verdicts", "error",
)  # fmt: skip
"""The fields of a trace in a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDetails:
    """Finds the details of a trace in the store, among open traces, or among those that sampling left out."""

    config: Config
    store: Store
    assembler: Assembler
    outcomes: TraceOutcomes
    pipeline: Pipeline
    trace_url: Callable[[str], str | None]
    clock_ns: Callable[[], int]

    async def found(self, trace_id: str, *, contents: bool) -> Mapping[str, object] | None:
        """The details in their JSON form; with ``contents``, what was read of the trace too."""
        kept = await self._kept(trace_id, contents=contents)
        if kept is None:
            return self._not_kept(trace_id)
        if not contents:
            return {**kept, "case": None}
        read, _ = await asyncio.to_thread(self._read, bytes.fromhex(trace_id))
        return {**kept, "case": read.to_json() if read is not None else None}

    async def spans(self, trace_id: str) -> bytes | None:
        """The spans of a trace as an OTLP request in protobuf; None once they are dropped, or cannot be read."""
        try:
            found = await asyncio.to_thread(held_spans, self.store, bytes.fromhex(trace_id))
        except PackedSpansError:
            return None
        return await asyncio.to_thread(encode_spans, found.spans) if found.spans else None

    async def page(self, trace_id: str, *, contents: bool) -> TracePage | None:
        """The data of the trace's page."""
        from sidejudge.dashboards.pages.trace_page import TracePage  # noqa: PLC0415  # only where one is read

        kept = await self._kept(trace_id, contents=contents)
        details = kept or self._not_kept(trace_id)
        if details is None:
            return None
        absent: Absence | None = "never"
        read, redacted = None, False
        if kept is not None and kept.get("kind") == "session":
            absent = "session"
        elif kept is not None and not contents:
            absent = "withheld"
        elif kept is not None:
            read, held = await asyncio.to_thread(self._read, bytes.fromhex(trace_id))
            redacted = held == "kept"
            absent = None if read is not None else "unreadable" if held else "gone"
        lines = list(happened(details))[1:]  # the first names the trace, as the page's heading does
        return TracePage(
            details=details, happened=lines, absent=absent, trace=read.trace if read else None,
            case=read.case if read else None, redacted=redacted, now_ns=self.clock_ns(),
        )  # fmt: skip

    def shown(self, verdict: VerdictDocument, *, contents: bool) -> VerdictDocument:
        """A verdict with the address of its trace, where that is known, and without ``contents`` with no quotation."""
        found = verdict.copy() if contents else cast("VerdictDocument", open_verdict(verdict))  # the same fields
        trace_id = verdict.get("trace_id")
        if trace_id and (url := self.trace_url(trace_id)) is not None:
            found["trace_url"] = url
        return found

    async def _kept(self, trace_id: str, *, contents: bool) -> TraceDocument | None:
        """The details of a drawn trace, open or ended."""
        wanted = bytes.fromhex(trace_id)
        details = await asyncio.to_thread(self.store.details, wanted)
        if details is None and self.pipeline.judge_queue.knows(wanted):
            waits_for = "embeddings" if wanted in self.pipeline.judge_queue.without_vectors else "judge"
            details = {"trace_id": trace_id, "reason": None, "verdicts": [], "waits_for": waits_for}
        elif details is None and self.assembler.knows(wanted):
            details = {"trace_id": trace_id, "reason": None, "verdicts": []}
        if details is None:
            return None
        if (pending := await asyncio.to_thread(self.store.late_references.of, wanted)) is not None:
            details["belated"] = _pending(pending)
        if not contents:
            details = open_details(details)
        verdicts = [self.shown(verdict, contents=contents) for verdict in details["verdicts"]]
        return self._linked({**details, "verdicts": verdicts}, trace_id)

    def listed(self, trace: TraceDocument, *, contents: bool) -> TraceDocument:
        """An ended trace as a list shows it: how it ended, why, and its verdicts in short."""
        every: Mapping[str, object] = trace
        found = cast("TraceDocument", {key: every[key] for key in _LISTED if key in every})  # the same fields, fewer
        if not contents:
            found = open_details(found)
            found["verdicts"] = [{**each, "reason": outline(each).shown()} for each in found["verdicts"]]
        for verdict in found["verdicts"]:
            verdict.pop("reason_parts", None)
        return self._linked({**found, "why": why(found)}, trace["trace_id"])

    def _linked(self, trace: TraceDocument, trace_id: str) -> TraceDocument:
        """The trace with the address of its page, where that is known."""
        url = self.trace_url(trace_id)
        return trace if url is None else {**trace, "trace_url": url}

    def _not_kept(self, trace_id: str) -> TraceDocument | None:
        """The details of a trace that ended before anything of it was kept."""
        wanted = bytes.fromhex(trace_id)
        if self.outcomes.has_excluded(wanted):
            why = "it is a trace of a monitor itself"
            return {"trace_id": trace_id, "reason": EndReason.EXCLUDED.value, "verdicts": [], "excluded": why}
        if not self.outcomes.has_sampled_out(wanted):
            return None
        ended: TraceDocument = {"trace_id": trace_id, "reason": EndReason.SAMPLED_OUT.value, "verdicts": []}
        sampling = self.config.sampling
        if sampling.rate is None and not sampling.rules:
            return ended  # the rate was another for each trace
        base = threshold(sampling.fixed_rate)
        draw: SamplingDocument = {"threshold": f"{base:014x}", "probability": probability(base)}
        if sampling.randomness_key is None:  # else a reader would learn which ids are drawn
            draw["randomness"] = f"{random_bits(wanted, sampling.hash_key):014x}"
        return {**ended, "sampling": draw}

    def _read(self, trace_id: bytes) -> tuple[Inspected | None, Holding | None]:
        """The case of a trace, None once its spans are let go; and how anything of it is held, None: not at all."""
        try:
            found = held_spans(self.store, trace_id)
        except PackedSpansError:
            return None, "kept"
        return next(iter(inspect_spans(found.spans)), None), found.how


def _pending(owed: PendingRevisions) -> LateReferenceDocument:
    """The late reference of a trace, and the progress of its re-evaluation."""
    return {
        "since": iso_time(owed.since_ns), "attempts": owed.attempts, "reason": owed.reason, "given_up": owed.over,
        "next_attempt": None if owed.over else iso_time(owed.due_ns),
    }  # fmt: skip
