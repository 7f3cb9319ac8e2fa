"""Writes failing traces into a dataset of Langfuse, up to a number a day.

Failing verdicts are found in the store, so that a kill loses none. An item's id is made from the dataset and the trace,
so that writing twice gives one item. Items beyond the daily limit are left out, because nobody would look through them.
The input is read from the spans while they are held, and from Langfuse after that.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.langfuse.client import encoded
from sidejudge.integrations.langfuse.datasets import NewDatasetItem, dataset_exists, item_id, make_dataset, put_item
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.sending import is_of_contents
from sidejudge.integrations.otlp.wire.kept import PackedSpansError
from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.config.langfuse import FailureDatasetSection
from sidejudge.monitor.deliver.dispatcher import DeliveryStatus
from sidejudge.monitor.deliver.kept_contents import held_spans
from sidejudge.monitor.ingest.langfuse.fetch import UnreadError, spans_of
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.checks.redaction import Redaction
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.runs.test_set import failing_metrics_of
from sidejudge.scoring.status.snapshots import ExportSnapshot
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.trace.time_units import DAY_NS
from sidejudge.scoring.trace.trace import Trace
from sidejudge.scoring.verdict.documents import VerdictDocument

from .parts import AGAIN_NS, MOST_KNOWN, FeedbackParts, looked_from, recent

log = logging.getLogger("sidejudge.langfuse")

MOST_BYTES: Final = 900_000
"""The largest item; Langfuse takes requests of 1 MiB."""
_MAX_REASON: Final = 1_000
_NESTED: Final = 64
"""Most levels of a value; deeper parts are left out."""
LANGFUSE_DATASET: Final = "langfuse_dataset"
"""Its name among connections and as a label of metrics."""
NO_CONTENTS: Final = "no_contents"
REASONS: Final = (*(kind.value for kind in LangfuseErrorKind), NO_CONTENTS)
"""Why a trace may not get into the dataset, as metrics name it."""
FACT: Final = "failure_dataset"
"""Name of the fact that records the written items, and how far verdicts were read."""
MOST_LOOKED_AT: Final = 500
"""Failing verdicts of one look, the latest."""
MOST_ATTEMPTS: Final = 8
"""Times that a server may fail at an item, each time just after it had shown the dataset."""
_MOST_DOUBTFUL: Final = 15
"""Items of one look that something in between may refuse before it counts as an outage."""
_DESCRIPTION: Final = "Traces that failed, written by sidejudge. What would have been right is for people to add."


def failing_item(
    dataset: str, trace_id: str, case: Case, verdicts: Sequence[VerdictDocument], redaction: Redaction
) -> NewDatasetItem | None:
    """The item of a trace.

    Args:
        dataset: the dataset that it goes to.
        trace_id: the trace, in hex.
        case: what was judged.
        verdicts: its verdicts that fail, as JSON objects.
        redaction: what is replaced in contents and reasons.

    Returns:
        The item, with the answer that failed in its metadata; without the answer where both are too large together;
        None where the input alone is.
    """

    def clean(value: object, left: int = _NESTED) -> Json:
        if isinstance(value, str):
            return redaction.apply(_storable(value))[0]
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, Mapping):
            return {_storable(str(key)): clean(each, left - 1) for key, each in value.items()} if left else None
        if isinstance(value, list | tuple):
            return [clean(each, left - 1) for each in value] if left else None
        return cast("Json", value)

    about: dict[str, Json] = {
        "source": "sidejudge",
        "verdicts": {str(each["rubric"]): _about(each, redaction) for each in verdicts},
        **{key: value for key in ("service", "environment", "task") if (value := getattr(case, key)) is not None},
    }
    asked, right = clean(case.input), clean(case.expected_outcome)
    for more in ({"output": clean(case.model_output)}, {"output_left_out": "too large"}):
        item = NewDatasetItem(
            id=item_id(dataset, trace_id), input=asked, expected_output=right, metadata={**about, **more},
            source_trace_id=trace_id,
        )  # fmt: skip
        if len(encoded([item.input, item.expected_output, dict(item.metadata)])) <= MOST_BYTES:
            return item
    return None


def _storable(text: str) -> str:
    """The text without what PostgreSQL, where Langfuse keeps items, stores in no JSON: NUL, halves of surrogates."""
    return text.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _about(verdict: VerdictDocument, redaction: Redaction) -> Json:
    """Why it failed."""
    return {
        "version": str(verdict.get("rubric_version", "")),
        "reason": redaction.apply(_storable(label(str(verdict.get("reason") or ""), _MAX_REASON)))[0],
        "composite": verdict.get("composite"),
        "metrics": list(failing_metrics_of([verdict])),
    }


class FailureDatasetFeeder:
    """Writes failing traces into one dataset, in ticks."""

    def __init__(self, section: FailureDatasetSection, parts: FeedbackParts) -> None:
        self._room = parts.room(f"item/{section.name}", section.per_day, 86_400.0)
        self._section, self._dataset = section, section.name
        self._scores_out, self._langfuse, self._redaction = parts.scores_out, parts.scores_out.langfuse, parts.redaction
        self._store, self._counters, self._clock_ns = parts.store, parts.counters, parts.clock_ns
        self._status = DeliveryStatus(LANGFUSE_DATASET)
        self._looked_ns: int | None = None
        self._written: dict[str, int] = {}
        self._left_out: dict[str, int] = {}
        self._waiting: dict[str, int] = {}
        self._refused = 0
        self._attempts: Counter[str] = Counter()
        self._ready = False

    def restore(self) -> None:
        """Restore the earlier state."""
        known = self._store.fact(FACT)
        if known is not None and known["dataset"] == self._dataset:
            self._looked_ns, self._written = known["looked_ns"], known["written"]

    def snapshot(self) -> ExportSnapshot:
        """How far failing traces have come."""
        return ExportSnapshot(
            destination=LANGFUSE_DATASET, state=self._status.state, reason=self._status.reason, project=self._dataset,
            waiting=len(self._waiting), oldest_s=min(self._waiting.values(), default=0) / 1e9 or None,
            dead=self._refused, last_success_s=self._status.last_success_s,
        )  # fmt: skip

    async def tick(self) -> None:
        """Write the failures so far. Raises ``StoreError``."""
        now_ns = self._clock_ns()
        if self._looked_ns is None:
            self._looked_ns = now_ns  # what was judged before this was configured is left alone
            await self._remember()
        try:
            if not self._ready:
                self._ready = await self._find()
            if not self._ready:
                return
            since_ns = looked_from(self._looked_ns, now_ns, DAY_NS)
            failing = _by_trace(await asyncio.to_thread(self._failing, since_ns))
            fresh = {of: each for of, each in failing.items() if self._is_new(of)}
            self._waiting = {of: int(verdicts[0]["closed_ns"]) for of, verdicts in fresh.items()}
            doubtful = await self._take_all(fresh, now_ns)
        except LangfuseError as error:
            self._ready = False
            self._status.change("retrying" if error.kind.transient else "stopped", str(error))
            self._counters.exported(LANGFUSE_DATASET)
            self._counters.export_failed(LANGFUSE_DATASET, error.kind.value)
            return
        self._status.change("ok")
        if not doubtful:
            self._looked_ns = now_ns
        self._left_out = {of: at for of, at in self._left_out.items() if at > now_ns - 2 * AGAIN_NS}
        await self._remember()

    def _is_new(self, trace_id: str) -> bool:
        # What is kept are ids of items: no trace's id, which may have to be forgotten.
        return trace_id not in self._left_out and item_id(self._dataset, trace_id) not in self._written

    def _failing(self, since_ns: int) -> list[VerdictDocument]:
        found = self._store.verdicts(passed="false", since_ns=since_ns, limit=MOST_LOOKED_AT)
        wanted = self._section.rubrics
        return [each for each in reversed(found) if each.get("trace_id") and (not wanted or each["rubric"] in wanted)]

    async def _find(self) -> bool:
        """Whether the dataset is there, which it is after it was made."""
        if await dataset_exists(self._langfuse, self._dataset):
            return True
        if self._section.create:
            await make_dataset(self._langfuse, self._dataset, _DESCRIPTION)
            log.info("a dataset was made for traces that fail", extra={"dataset": self._dataset})
            return True
        self._status.change("stopped", f"the project has no dataset {self._dataset!r}; make it, or set create: true")
        return False

    async def _take_all(self, fresh: Mapping[str, list[VerdictDocument]], now_ns: int) -> bool:
        """Write all of them; whether some wait because something in between refuses them while it lets others by.

        Raises ``LangfuseError`` where none is let by.
        """
        doubtful: dict[str, LangfuseError] = {}
        for trace_id, verdicts in fresh.items():
            try:
                await self._take(trace_id, verdicts, now_ns)
            except LangfuseError as error:
                doubtful[trace_id] = error
                if not is_of_contents(error) or len(doubtful) >= _MOST_DOUBTFUL:
                    raise
            else:
                del self._waiting[trace_id]
        if doubtful and self._status.last_success_ns != now_ns:
            raise next(iter(doubtful.values()))
        for trace_id, why in doubtful.items():
            self._attempts[trace_id] += 1
            if self._attempts[trace_id] >= MOST_ATTEMPTS:
                self._leave_out(trace_id, why.kind.value, str(why), now_ns)
        return any(trace_id not in self._left_out for trace_id in doubtful)

    async def _take(self, trace_id: str, verdicts: list[VerdictDocument], now_ns: int) -> None:
        if recent(self._written.values(), now_ns, DAY_NS) >= self._section.per_day:
            self._left_out[trace_id] = now_ns
            return
        case = await self._case(trace_id)
        if case is None:
            self._leave_out(trace_id, NO_CONTENTS, "its spans are neither held here nor in Langfuse", now_ns)
            return
        item = await asyncio.to_thread(failing_item, self._dataset, trace_id, case, verdicts, self._redaction)
        if item is None:
            self._leave_out(trace_id, LangfuseErrorKind.TOO_LARGE.value, "its input is too large", now_ns)
            return
        if self._room is not None and not await self._room(item.id):
            self._left_out[trace_id] = now_ns
            return
        try:
            await put_item(self._langfuse, self._dataset, item)
        except LangfuseError as error:
            fails = error.kind is LangfuseErrorKind.SERVER_ERROR
            self._attempts[trace_id] += fails
            given_up = fails and self._attempts[trace_id] >= MOST_ATTEMPTS
            if not given_up and error.kind not in (LangfuseErrorKind.REFUSED, LangfuseErrorKind.TOO_LARGE):
                raise
            self._leave_out(trace_id, error.kind.value, str(error), now_ns)
            return
        self._attempts.pop(trace_id, None)
        self._written[item.id] = self._status.last_success_ns = now_ns
        self._counters.exported(LANGFUSE_DATASET, at_s=now_ns / 1e9)
        while len(self._written) > MOST_KNOWN:
            del self._written[next(iter(self._written))]
        await self._remember()

    def _leave_out(self, trace_id: str, reason: str, cause: str, now_ns: int) -> None:
        self._attempts.pop(trace_id, None)
        log.warning("a failing trace is not in the dataset", extra={"trace_id": trace_id, "cause": cause})
        self._counters.exported(LANGFUSE_DATASET)
        self._counters.export_failed(LANGFUSE_DATASET, reason)
        self._refused += 1
        self._left_out[trace_id] = now_ns

    async def _case(self, trace_id: str) -> Case | None:
        """The judged case, as far as it can still be read. Raises ``LangfuseError``."""
        held = await asyncio.to_thread(self._held, trace_id)
        if held is not None:
            return held
        server = self._scores_out.server
        if server is None or not (server.observations_v2 or server.legacy_reads):
            return None
        try:
            spans = await spans_of(self._langfuse, server, trace_id)
        except UnreadError:
            return None
        return await asyncio.to_thread(_case_of, trace_id, spans)

    def _held(self, trace_id: str) -> Case | None:
        try:
            return _case_of(trace_id, held_spans(self._store, bytes.fromhex(trace_id)).spans)
        except PackedSpansError:
            return None

    async def _remember(self) -> None:
        await self._store.keep_fact(
            FACT, {"dataset": self._dataset, "looked_ns": self._looked_ns, "written": self._written}
        )


def _case_of(trace_id: str, spans: Iterable[RawSpan]) -> Case | None:
    """The case of a trace; None where its input is unknown, because an item without one is useless."""
    read = [normalise(span) for span in spans]
    case = extract(Trace.of(trace_id, read, "batch")) if read else None
    return case if case is not None and case.input not in (None, "", [], {}) else None


def _by_trace(verdicts: Iterable[VerdictDocument]) -> dict[str, list[VerdictDocument]]:
    found: dict[str, list[VerdictDocument]] = {}
    for verdict in verdicts:
        found.setdefault(str(verdict["trace_id"]), []).append(verdict)
    return found
