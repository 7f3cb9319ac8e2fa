"""Stories: all that is known of one trace, as the API and its page tell it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Any, Literal, Protocol

from dashboards.pages.trace_page import Absence, TracePage
from integrations.otlp.wire.kept import decode_kept
from integrations.store.late_references import PendingRevisions
from monitor.config import Config
from monitor.evaluate.pipeline import Pipeline
from monitor.ingest.assembler import Assembler
from monitor.ingest.outcomes import Reason, TraceOutcomes
from monitor.ingest.sampler import probability, random_bits, threshold
from scoring.trace.instant import written

from .explain import happened
from .inspect import Inspected, inspect_spans


def shows_contents(allowed: Literal["loopback", "always", "never"], caller: str | None) -> bool:
    """Whether a caller at this address is shown what people and models said."""
    if allowed != "loopback":
        return allowed == "always"
    try:
        address = ip_address(caller or "")
    except ValueError:
        return False
    # A socket for both IPv4 and IPv6 tells of 127.0.0.1 as ::ffff:127.0.0.1.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


class TraceDetail(Protocol):
    """What is read of the store."""

    def chunks(self, trace_id: bytes, /) -> list[bytes]: ...
    def story(self, trace_id: bytes, /) -> dict[str, Any] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDetails:
    """Asks whoever may know of a trace: the store, those who hold it open, the memory of what was not drawn."""

    config: Config
    store: TraceDetail
    assembler: Assembler
    ledger: TraceOutcomes
    pipeline: Pipeline
    trace_url: Callable[[str], str | None]
    clock_ns: Callable[[], int]
    owed: Callable[[bytes], PendingRevisions | None] = lambda _: None

    async def story(self, trace_id: str, caller: str | None) -> Mapping[str, object] | None:
        """The story in its JSON form, with what was read of the trace for callers who may see that."""
        kept = await self._kept(trace_id)
        if kept is None:
            return self._not_kept(trace_id)
        if not shows_contents(self.config.api.contents, caller):
            return {**kept, "case": None}
        read, _ = await asyncio.to_thread(self._read, bytes.fromhex(trace_id))
        return {**kept, "case": read.to_json() if read is not None else None}

    async def page(self, trace_id: str, caller: str | None) -> TracePage | None:
        """What the story's page shows."""
        kept = await self._kept(trace_id)
        told = kept or self._not_kept(trace_id)
        if told is None:
            return None
        absent: Absence | None = "never"
        read = None
        if kept is not None and kept.get("kind") == "session":
            absent = "session"
        elif kept is not None and not shows_contents(self.config.api.contents, caller):
            absent = "withheld"
        elif kept is not None:
            read, held = await asyncio.to_thread(self._read, bytes.fromhex(trace_id))
            absent = None if read is not None else "unreadable" if held else "gone"
        lines = list(happened(told))[1:]  # the first names the trace, as the page's heading does
        return TracePage(
            story=told, happened=lines, absent=absent, trace=read.trace if read else None,
            case=read.case if read else None, now_ns=self.clock_ns(),
        )  # fmt: skip

    def linked(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """With the address of its trace, where that is known."""
        url = self.trace_url(said["trace_id"]) if said.get("trace_id") else None
        return dict(said) if url is None else {**said, "trace_url": url}

    async def _kept(self, trace_id: str) -> dict[str, Any] | None:
        """What is known of a trace that was drawn, open or ended."""
        wanted = bytes.fromhex(trace_id)
        told = await asyncio.to_thread(self.store.story, wanted)
        if told is None and self.pipeline.judge_queue.knows(wanted):
            told = {"trace_id": trace_id, "reason": None, "verdicts": [], "waits_for": "judge"}
        elif told is None and self.assembler.knows(wanted):
            told = {"trace_id": trace_id, "reason": None, "verdicts": []}
        if told is None:
            return None
        if (owed := await asyncio.to_thread(self.owed, wanted)) is not None:
            told["belated"] = _belated(owed)
        return self.linked({**told, "verdicts": [self.linked(verdict) for verdict in told["verdicts"]]})

    def _not_kept(self, trace_id: str) -> dict[str, Any] | None:
        """What is remembered of a trace that ended before anything of it was kept."""
        wanted = bytes.fromhex(trace_id)
        if self.ledger.has_excluded(wanted):
            why = "it is what a monitor tells of itself"
            return {"trace_id": trace_id, "reason": Reason.EXCLUDED.value, "verdicts": [], "excluded": why}
        if not self.ledger.has_sampled_out(wanted):
            return None
        base = threshold(self.config.sampling.rate)
        return {
            "trace_id": trace_id,
            "reason": Reason.SAMPLED_OUT.value,
            "verdicts": [],
            "sampling": {
                "randomness": f"{random_bits(wanted, self.config.sampling.randomness):014x}",
                "threshold": f"{base:014x}",
                "probability": probability(base),
            },
        }

    def _read(self, trace_id: bytes) -> tuple[Inspected | None, bool]:
        """What was read of a trace, None once its spans are let go; and whether anything of it is held."""
        chunks = self.store.chunks(trace_id)
        spans = decode_kept(chunks).spans  # the story counts what is damaged
        return next(iter(inspect_spans(spans)), None), bool(chunks)


def _belated(owed: PendingRevisions) -> dict[str, object]:
    """That its reference changed after its spans were let go, and how far judging it again has come."""
    return {
        "since": written(owed.since_ns), "attempts": owed.attempts, "reason": owed.reason, "given_up": owed.over,
        "next_attempt": None if owed.over else written(owed.due_ns),
    }  # fmt: skip
