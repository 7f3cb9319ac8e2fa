"""Case: everything that a metric may read, from a trace or from a file.

The field names are those of the case format. ``None`` (or empty) means absent, never zero. An absent field makes the
metrics that need it *unavailable*; it is never an error of the case.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar, cast

from sidejudge.scoring.lexical.transcript import Moment, moments_of_text, moments_of_turns
from sidejudge.scoring.lexical.transcript_index import MAX_TRANSCRIPT, TranscriptIndex
from sidejudge.scoring.trace.jsontext import no_constant
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.trace.reported import ReportedScore
from sidejudge.scoring.trace.span import Completion, Json, ToolCall, Unread
from sidejudge.scoring.trace.tool_spans import canonical
from sidejudge.scoring.trace.trace import Trace

if TYPE_CHECKING:
    from sidejudge.scoring.scenario.scenario import Scenario

T = TypeVar("T")

_FENCE = re.compile("`{3,}|~{3,}")
_INFO = re.compile(r"[^\S\n]*[\w./+;=:-]*[^\S\n]*")
"""The info string of an opening fence: a language or a media type."""
_BYTE_ORDER_MARK = "\ufeff"
_NOT_YET = object()


@dataclass(frozen=True, slots=True)
class Utterance:
    """One turn of a transcript; ``at`` is its time stamp as written (``01:23``)."""

    text: str
    speaker: str | None = None
    at: str | None = None


@record(frozen=True, slots=True, kw_only=False)
class ParsedOutput:
    """The model's output read as JSON. ``error`` is why it cannot be read; ``fenced``: one code fence was removed."""

    value: Json = None
    error: str | None = None
    fenced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """The usual effort of runs of a case's service, by measure (``scoring.metrics.run_effort``).

    ``limits`` are the values above which a run is far from usual, ``medians`` the middle values; a measure with too few
    runs is in neither. ``runs`` is the number of known runs, ``needed`` the number that is needed.
    """

    limits: Mapping[str, float]
    medians: Mapping[str, float]
    runs: int
    needed: int


@record(frozen=True, slots=False, kw_only=True)
class Case:
    """One thing to judge. ``sampling_probability`` is the chance with which it was drawn, in (0, 1].

    ``complete`` is false when its trace was cut short: then *not called* cannot be distinguished from *not seen*.
    ``content_captured`` is false when the telemetry carried no message contents; ``unread`` describes possible contents
    that were not understood. ``error`` is the message of the first step that failed (``None``: no step did).
    ``repeats`` are the outputs of further runs of the same input, in order. ``root_span_id`` is the root's id, else
    that of the earliest topmost span. ``trace`` is the trace itself, None where the case came from a file; with a
    trace, ``tool_span_ids`` are the spans of the calls in ``tools_used``, one each. ``usual`` is the effort of the
    service's other runs, None where unknown; ``budget`` is the effort that the run may take, by measure. ``reported``
    holds scores that others gave the run.
    """

    case_id: str
    model_output: Json
    repeats: tuple[Json, ...] | None = None
    task: str | None = None
    input: Json = None
    transcript: str | tuple[Utterance, ...] | None = None
    expected_outcome: Json = None
    config: Mapping[str, Json] = field(default_factory=dict)
    scenario: Scenario | Json = None
    agents_called: tuple[str, ...] | None = None
    tools_used: tuple[ToolCall, ...] | None = None
    context: tuple[str, ...] | None = None
    system_prompt: str | None = None
    latency_e2e_ms: float | None = None
    latency_model_ms: float | None = None
    timed_out: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    model: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    evaluation_criteria_override: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    service: str | None = None
    environment: str | None = None
    sampling_probability: float = 1.0
    trace_id: str | None = None
    root_span_id: str | None = None
    name: str | None = None
    error: str | None = None
    complete: bool = True
    completion: Completion | None = None
    content_captured: bool = True
    capture_switch: str | None = None
    unread: tuple[Unread, ...] = field(default=(), compare=False)
    trace: Trace | None = field(default=None, repr=False, compare=False)
    tool_span_ids: tuple[str, ...] = field(default=(), repr=False, compare=False)
    reported: tuple[ReportedScore, ...] = ()
    usual: Usual | None = field(default=None, repr=False, compare=False)
    budget: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)

    def drawn(
        self,
        sampling_probability: float,
        scenario: Scenario | Json,
        *,
        usual: Usual | None = None,
        budget: Mapping[str, float] | None = None,
    ) -> Case:
        """The case with its sampling probability and all that judging adds; a faster ``dataclasses.replace``."""
        held = {
            **self.__dict__,
            "sampling_probability": sampling_probability,
            "scenario": scenario,
            "usual": usual or self.usual,
            "budget": budget or self.budget,
        }
        for name in _DERIVED:
            held.pop(name, None)
        case = object.__new__(Case)
        case.__dict__ = held
        return case

    @property
    def unread_answer(self) -> tuple[Unread, ...]:
        """Contents that may hold the answer where none was read: present, and understood by no dialect."""
        if self.model_output is not None:
            return ()
        return tuple(unread for unread in self.unread if unread.field != "input")

    @cached_property
    def output(self) -> ParsedOutput:
        """The model's output as JSON. Text must parse; one Markdown fence around it is tolerated and reported."""
        return parse_output(self.model_output)

    @cached_property
    def expected(self) -> ParsedOutput:
        """The expected outcome as JSON, read like the output."""
        return parse_output(self.expected_outcome)

    def once(self, derive: Callable[[Case], T]) -> T:
        """The result of ``derive`` for this case, computed once: the metrics of a rubric share lists and sets.

        ``derive`` is a module's function; it also serves as the key of the kept value. What it raises is not kept: the
        next metric tries again.
        """
        known = self.__dict__.setdefault("_derived", {})
        found = known.get(derive, _NOT_YET)
        if found is _NOT_YET:
            found = known[derive] = derive(self)
        return cast("T", found)

    @property
    def output_content(self) -> Json:
        """The output as JSON where it is JSON, else as text."""
        return self.model_output if self.output.error else self.output.value

    @property
    def expected_content(self) -> Json:
        """The expected outcome, read in the same way; ``None`` when there is none."""
        return self.expected_outcome if self.expected.error else self.expected.value

    @cached_property
    def transcript_text(self) -> str | None:
        """The transcript as one text, a line a turn (``[01:23] agent: …``); ``None`` when there is none."""
        if self.transcript is None or isinstance(self.transcript, str):
            return self.transcript
        return "\n".join(
            (f"[{turn.at}] " if turn.at else "") + (f"{turn.speaker}: " if turn.speaker else "") + turn.text
            for turn in self.transcript
        )

    @cached_property
    def spoken_text(self) -> str | None:
        """The transcript as text, structured turns without speakers and times; ``None`` when there is none."""
        if self.transcript is None or isinstance(self.transcript, str):
            return self.transcript
        return "\n".join(turn.text for turn in self.transcript)

    @cached_property
    def transcript_index(self) -> TranscriptIndex | None:
        """The transcript indexed for lexical answers; ``None`` without one, or beyond ``MAX_TRANSCRIPT`` characters."""
        text = self.transcript_text
        if text is None or len(text) > MAX_TRANSCRIPT:
            return None
        if self.transcript is None or isinstance(self.transcript, str):
            return TranscriptIndex(text, moments_of_text(text))
        return TranscriptIndex(text, moments_of_turns((turn.text, turn.speaker, turn.at) for turn in self.transcript))

    @cached_property
    def reference_index(self) -> TranscriptIndex | None:
        """The texts of the expected outcome, without numbers and keys, indexed likewise; ``None`` when too long.

        Each text is a moment, with empty ones between them: the texts of two speakers are never adjacent.
        """
        stated = list(texts_in(self.expected_content))
        text = "\n".join(stated)
        if len(text) > MAX_TRANSCRIPT:
            return None
        return TranscriptIndex(text, [moment for each in stated for moment in (Moment(each), Moment(""), Moment(""))])


_DERIVED = ("_derived", *(name for name, value in vars(Case).items() if isinstance(value, cached_property)))
"""Values computed from the fields of a case so far."""


def texts_in(value: Json) -> Iterator[str]:
    """All texts in a value at any depth, in order."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, list):
            waiting.extend(reversed(found))
        elif isinstance(found, dict):
            waiting.extend(reversed(found.values()))


def parse_output(output: Json) -> ParsedOutput:
    """Read an output as JSON, strictly: NaN, infinities (``1e999``) and doubled keys are not JSON.

    A byte order mark and one Markdown fence (backticks or tildes, any info string) are removed.
    """
    if not isinstance(output, str):
        return ParsedOutput(output)
    text, fenced = _unfence(output.strip().removeprefix(_BYTE_ORDER_MARK).strip())
    try:
        value: Json = json.loads(text, parse_constant=no_constant, parse_float=_finite, object_pairs_hook=_unique)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is not a character
        return ParsedOutput(value, fenced=fenced)
    except (ValueError, RecursionError) as error:
        return ParsedOutput(error=f"not JSON: {error}", fenced=fenced)


def _unfence(text: str) -> tuple[str, bool]:
    opening = _FENCE.match(text)
    if opening is None:
        return text, False
    mark, width = text[0], opening.end()
    body = text.rstrip(mark)
    if len(text) - len(body) < width or len(body) <= width:
        return text, False  # not closed, or nothing but marks
    head, newline, rest = body[width:].partition("\n")
    inner = rest if newline and _INFO.fullmatch(head) else body[width:]
    return inner.strip().removeprefix(_BYTE_ORDER_MARK), True


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:40]} is too large a number")
    return value


def _unique(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key[:60]!r} stands twice")
        found[key] = value
    return found


_READ: Final = 20_000
"""Characters of the input that are read."""
_WORD: Final = re.compile(r"[^\W\d_]{3,40}")


def asked_words(case: Case) -> frozenset[str]:
    """The words of the input with three letters or more, case-folded; none where the input is unknown."""
    given = case.input
    text = given if isinstance(given, str) else "" if given is None else canonical(given)
    return frozenset(_WORD.findall(text[:_READ].casefold()))
