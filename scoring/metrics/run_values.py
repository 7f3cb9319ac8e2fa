"""Whether identifiers in tool calls occurred in any earlier text of the run, or are made up.

It searches for values that nobody knows by heart or calculates: order numbers, accounts, addresses with digits.
Amounts, dates, versions, code and phrases are left out, because an agent may make those itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import cut_at
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, part
from sidejudge.scoring.result.result import Method, NotApplicable, Result, Unavailable, at_least
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.span import Json, Span, SpanKind
from sidejudge.scoring.trace.tool_spans import canonical

from .run_ending import UNKNOWN_CALLS, of_run, run_metric
from .run_steps import CallStep, run_steps, share_without

MOST_CHARACTERS: Final = 1_000_000
"""Most characters of one run that are searched for the values."""
_LONGEST_VALUE: Final = 80
_LEAST_DIGITS: Final = 4
_LEAST_OF_A_NUMBER: Final = 5
"""Fewest digits of a plain number under the name of an identifier."""
_NAMING: Final = "id ids identifier number no code codes key ref reference sku account phone isbn iban doi serial email"
_NAMES_ONE: Final = frozenset(_NAMING.split())
"""Last words in names of arguments that hold an identifier."""
_CHOSEN: Final = (
    "idempotency request session thread trace correlation run task todo step seed port time date datetime year amount"
    " price total sum count limit size page offset block expression formula query path file filename color colour"
    " version resolution width height timeout interval duration format encoding algorithm model"
)
_MADE_BY_THE_AGENT: Final = frozenset(_CHOSEN.split())
"""Words in names of arguments whose values an agent chooses or calculates."""
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DATE: Final = re.compile(
    r"^(?:\d{4}-?\d\d-?\d\d|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{4}-w?\d\d|q\d-?\d{4})"
    r"(?:[t ].*)?$"
    r"|^(?:19|20)\d\d$|^v?\d+(?:\.\d+){1,3}$|^\d\d?:\d\d",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"^[-+]?\d+(?:[.,]\d+)*%?$")
_WITH_DIGITS: Final = re.compile(r"(?<![^\W_])[^\W\d_]*+\d[^\W_]*+")
_DIGITS: Final = re.compile(r"\d")
_PLAIN_DIGITS: Final = re.compile(r"\d[\d ()./-]*\d")
_YEARS: Final = re.compile(r"^(?:19|20)\d\d$")
_LIKE_ONE: Final = re.compile(r"^[^\w]?[^\W\d_]|@|://")
"""Values that look like identifiers under any argument name: they begin with a letter."""
_PORT: Final = re.compile(r"(?<=[\w\]]):\d{2,5}(?=/|$)")
_ESCAPED: Final = re.compile(r"\\[nrtbf]")
_RETURNS: Final = frozenset({SpanKind.AGENT, SpanKind.RETRIEVER})
_TOO_LONG: Final = NotApplicable(
    Reason("the run holds more than {most} characters, which are not searched", most=MOST_CHARACTERS)
)
_NO_VALUES: Final = NotApplicable(Reason("no argument of a call looks like an identifier"))


@run_metric(
    meaning="The share of identifiers in arguments of calls that stand in an earlier text of the run: its input, a "
    "prompt, a result, an answer of a model. The others may be made up.",
    formula="1 − identifiers that stand in no earlier text / identifiers (words with four digits and more, no date)",
    bands=at_least(good=1.0, acceptable=0.8),
    methods=(Method.LEXICAL,),
    undefined="contents or an earlier result are not known, or the trace is incomplete; not applicable without an "
    "identifier, and where the run is too long to be searched",
)
@of_run
def values_founded(case: Case) -> Result:  # noqa: D103  # its card documents it
    steps = case.once(run_steps)
    if steps.calls is None:
        return UNKNOWN_CALLS
    wanted = [(step, given) for step in steps.calls if (given := _identifiers(step))]
    if not wanted:
        return _NO_VALUES
    if not case.complete:
        return Unavailable(Reason("the trace is incomplete: an earlier text may be in what never came"))
    if case.input is None and case.transcript is None:
        return Unavailable(Reason("the input of the run is not known"))
    texts = _EarlierTexts(case, steps.calls)
    known = set[str]()
    found: list[tuple[str | None, Reason]] = []
    settled = 0
    for step, given in wanted:
        if (unsearched := texts.read_until(step)) is not None:
            return unsearched
        for name, pieces in given.items():
            settled += 1
            if not pieces - texts.held <= known:
                where = part(f"{label(step.call.name)}.{label(name)}")
                found.append((step.span_id, Reason("{argument}: its value stands in no earlier text", argument=where)))
            known |= pieces  # one sign a value, however often it is used
    if found and (most := case.once(cut_at)) is not None:
        return Unavailable(
            Reason("texts are cut off at {most} characters: the rest of an earlier one is not known", most=most)
        )
    return share_without(found, settled, "identifiers stand in no earlier text", method=Method.LEXICAL)


def _identifiers(step: CallStep) -> dict[str, frozenset[str]]:
    """The arguments of a call that look like identifiers, each as its words with digits, which must be found."""
    found: dict[str, frozenset[str]] = {}
    arguments = decoded(step.call.arguments)
    for name, value in arguments.items() if isinstance(arguments, dict) else ():
        words = [word for word in re.split(r"[\W_]+", _CAMEL.sub("_", name).casefold()) if word]
        if not _MADE_BY_THE_AGENT.isdisjoint(words):
            continue
        for one in value if isinstance(value, list) else [value]:
            if pieces := _pieces(one, named=words[-1:] != [] and words[-1] in _NAMES_ONE):
                found[name] = found.get(name, frozenset()) | pieces
    return found


def _pieces(value: Json, *, named: bool) -> frozenset[str]:
    """The words with digits of a value that looks like an identifier; ``named``: its argument's name does too."""
    text = "" if isinstance(value, bool) or not isinstance(value, str | int) else str(value).strip().casefold()
    if not text or len(text) > _LONGEST_VALUE or len(text.split()) > 1 or _DATE.match(text):
        return frozenset()
    if not (named or _LIKE_ONE.search(text)) or (
        _NUMBER.match(text) and len(_DIGITS.findall(text)) < _LEAST_OF_A_NUMBER
    ):
        return frozenset()
    words = _WITH_DIGITS.findall(_PORT.sub("", text))
    return frozenset([word for word in words if len(_DIGITS.findall(word)) >= _LEAST_DIGITS and not _YEARS.match(word)])


class _EarlierTexts:
    """The words with digits of all requests, offers and results before a call.

    Texts written by models of this run do not count: a value that a model makes up first occurs in its own words.
    """

    def __init__(self, case: Case, calls: Sequence[CallStep]) -> None:
        self.held: set[str] = set()
        self._left = MOST_CHARACTERS
        self._unknown = False
        spans = () if case.trace is None else case.trace.spans
        self._seen = {message.text for span in spans for message in span.output_messages}
        for value in (case.input, case.transcript_text, case.system_prompt, dict(case.metadata), *(case.context or ())):
            self._read(value)
        waiting: list[tuple[int, Iterable[Json]]] = [(span.start_ns, _given(span)) for span in spans]
        waiting += [(span.end_ns, [*span.documents, span.output if span.kind in _RETURNS else None]) for span in spans]
        self._waiting = sorted(waiting, key=itemgetter(0), reverse=True)
        self._calls = sorted(calls, key=lambda step: step.end_ns)[::-1]  # without times, in their order

    def read_until(self, step: CallStep) -> Result | None:
        """Read all texts before a call; return why they are unknown, if they are."""
        while self._waiting and self._waiting[-1][0] <= step.start_ns:
            for value in self._waiting.pop()[1]:
                self._read(value)
        while self._calls and self._calls[-1] is not step and self._calls[-1].end_ns <= step.start_ns:
            earlier = self._calls.pop()
            self._unknown = self._unknown or (earlier.call.result is None and earlier.failure is None)
            self._read(earlier.call.result)
            self._read(earlier.call.error)
        if self._unknown:
            return Unavailable(Reason("the result of an earlier call is not known"))
        return _TOO_LONG if self._left < 0 else None

    def _read(self, value: Json) -> None:
        text = value if isinstance(value, str) else "" if value is None else canonical(value)
        if self._left >= 0 and text and text not in self._seen:
            self._seen.add(text)
            self._left -= len(text)
            text = _ESCAPED.sub(" ", text[:MOST_CHARACTERS].casefold())
            self.held.update(_WITH_DIGITS.findall(text))
            self.held.update(["".join(_DIGITS.findall(number)) for number in _PLAIN_DIGITS.findall(text)])


def _given(span: Span) -> Iterator[Json]:
    yield span.system_prompt
    yield from span.tool_definitions
    if span.tool is None and not span.input_messages:
        yield span.input
    for message in span.input_messages:
        yield message.text
