"""Whether a later answer states the opposite of what a tool returned.

Two opposites are read, in English: a boolean of a result (``"refundable": false`` and *it is refundable*), and a call
that failed and was not made again with success (``book_seat`` fails and *I have booked the seat*).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.lexicon import STOPWORDS
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, part
from sidejudge.scoring.result.result import Method, NotApplicable, Result, Scored, at_least
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.trace.span import Json

from .answer_failure import sole_text
from .run_ending import of_run, run_metric
from .run_steps import CallStep, RunSteps, first_signs, run_steps, signs
from .run_words import is_english
from .service_message import texts_in

_READ: Final = 20_000
"""Most characters of one answer that are read."""
_MOST_LEAVES: Final = 2_000
_WORD: Final = re.compile(r"^[a-z]{4,}$")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LEADING: Final = frozenset({"is", "was", "has", "been"})
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n")
_WORDS: Final = re.compile(r"[^\W_]{4,}")
_HEDGES: Final = re.compile(
    r"\b(?:without|unless|if|whether|would|could|should|may|might|will|can|try|tried|attempt\w*|but|however"
    r"|except|only|until|once|when|before|ensure|make\s+sure|assum\w+|suppos\w+)\b|\?",
    re.IGNORECASE,
)
"""A sentence with one of these states nothing plainly."""
_NEGATES: Final = re.compile(
    r"\b(?:not|no|never|none|neither|nor|cannot|unable|fail\w*|error|unfortunately)\b|n['’]t\b", re.IGNORECASE
)
_ADVERBS: Final = r"(?:(?:now|currently|still|fully|also|already|just|successfully|indeed)\s+)*"
_IS: Final = rf"(?:is|are|was|were|has\s+been|have\s+been)\s+{_ADVERBS}"
_IS_NOT: Final = rf"(?:(?:is|are|was|were)\s+(?:\w+\s+)?not|(?:is|are|was|were)n['’]t)\s+{_ADVERBS}"
_IS_DONE: Final = (
    rf"(?:(?:i|we)(?:['’]ve|\s+have)?\s+{_ADVERBS}|(?:has|have)\s+{_ADVERBS}been\s+{_ADVERBS}|(?:is|are)\s+now\s+)"
)
_STATEMENTS: Final = {
    words: re.compile(rf"\b(?={words}([a-z]{{4,}})\b)", re.IGNORECASE) for words in (_IS, _IS_NOT, _IS_DONE)
}
"""What states something of the word that follows. One look at a sentence finds all, however many facts are shown."""
_MOST_STATED: Final = 20
"""Most opposites that one sentence may state."""
_ACTING: Final = (
    "add apply approve assign book cancel close confirm create delete deploy email issue order pay post publish"
    " purchase refund register remove rename reserve reset schedule send submit transfer unlock update upload"
)
_ACTIONS: Final = frozenset(_ACTING.split())
_IRREGULAR: Final = {
    "pay": "paid", "send": "sent", "reset": "reset", "submit": "submitted", "transfer": "transferred",
    "cancel": "cancelled", "apply": "applied",
}  # fmt: skip
_VERBS: Final = {_IRREGULAR.get(verb, verb + "d" if verb.endswith("e") else verb + "ed"): verb for verb in _ACTIONS} | {
    "canceled": "cancel"
}
"""The verb of each past participle."""
_READING: Final = re.compile(
    r"(?:^|[_\W])(?:get|list|search|find|read|look|lookup|fetch|check|query|view|show|browse|retrieve|describe)(?:$|[_\W])"
)
"""Names of tools that change nothing, so that they cannot have repaired a failure."""
_NOTHING: Final = NotApplicable(Reason("no result holds a yes or no, and no call with an effect failed"))


_Opposite: TypeAlias = tuple[str, str]
"""A kind of statement, and its word."""


@record(frozen=True, slots=True, kw_only=True)
class _Shown:
    """A fact that a call shows, its opposite, and the words of the call."""

    step: CallStep
    opposite: _Opposite
    about: frozenset[str]
    sign: Reason

    def is_contradicted(self, stated: Mapping[_Opposite, Mapping[str, float]]) -> bool:
        """Whether the opposite was stated after the call, beside another word of it."""
        beside = stated.get(self.opposite, {})
        return any(beside[word] >= self.step.end_ns and word != self.opposite[1] for word in self.about & beside.keys())


@run_metric(
    meaning="The share of results of which no later answer states the opposite: of a yes or no by its name, and of a "
    "call with an effect that failed. A sign by English words.",
    formula="1 − results whose opposite is stated / booleans in results that agree, and failed calls of tools that act",
    bands=at_least(good=1.0, acceptable=0.9),
    methods=(Method.LEXICAL,),
    undefined="not applicable without such a result or an answer in English, or where contents were not captured",
)
@of_run
def results_upheld(case: Case) -> Result:  # noqa: D103  # its card documents it
    steps = case.once(run_steps)
    calls = steps.calls or ()
    shown = [*_booleans(calls), *_failures(calls)]
    if not shown:
        return _NOTHING
    answers = [(at, text[:_READ]) for at, text in _answers(case, steps) if is_english(text[:_READ])]
    if not answers:
        return NotApplicable(Reason("no model answered in English"))
    stated = _stated(answers, {each.opposite for each in shown})
    found: list[tuple[str | None, Reason]] = [
        (each.step.span_id, each.sign) for each in shown if each.is_contradicted(stated)
    ]
    why = "the opposite of {n} of {all} results is stated: {signs}"
    return Scored(
        value=1.0 - len(found) / len(shown),
        method=Method.LEXICAL,
        reason=Reason(why, n=len(found), all=len(shown), signs=first_signs(found)) if found else "",
        details=signs(found),
    )


def _answers(case: Case, steps: RunSteps) -> Iterator[tuple[float, str]]:
    """The models' texts with their times, and the answer of the run."""
    for span in steps.models:
        yield span.end_ns, "\n".join(message.text for message in span.output_messages if message.text)
    yield math.inf, sole_text(case.model_output)


def _stated(
    answers: Iterable[tuple[float, str]], opposites: Collection[_Opposite]
) -> dict[_Opposite, dict[str, float]]:
    """Which of these are stated plainly: the words beside each, with the time of the last sentence that has both."""
    stated: dict[_Opposite, dict[str, float]] = {}
    for at, sentence in ((at, sentence) for at, text in answers for sentence in _SENTENCE.split(text)):
        found = set(islice(filter(opposites.__contains__, _statements(sentence)), _MOST_STATED))
        if not found or _HEDGES.search(sentence) is not None:
            continue
        negated = _NEGATES.search(sentence) is not None
        words = {word.casefold() for word in _WORDS.findall(sentence)}
        for opposite in found:
            if opposite[0] is _IS_NOT or not negated:
                beside = stated.setdefault(opposite, {})
                beside.update((word, max(at, beside.get(word, at))) for word in words)
    return stated


def _statements(sentence: str) -> Iterator[_Opposite]:
    for kind, pattern in _STATEMENTS.items():
        for found in pattern.finditer(sentence):
            word = found[1].casefold()
            yield kind, _VERBS.get(word, "") if kind is _IS_DONE else word


def _booleans(calls: Sequence[CallStep]) -> Iterator[_Shown]:
    """The booleans by name on which all results agree, each with the last call that returned it."""
    held: dict[str, tuple[set[bool], CallStep, str]] = {}
    for step in calls:
        if step.failure is None:
            for name, word, value in _leaves(decoded(step.call.result)):
                values = held[word][0] if word in held else set[bool]()
                held[word] = values | {value}, step, name
    about: dict[int, frozenset[str]] = {}
    for word, (values, step, name) in held.items():
        if len(values) == 1:
            (value,) = values
            if id(step) not in about:
                about[id(step)] = _about(step)
            yield _Shown(
                step=step, opposite=(_IS_NOT if value else _IS, word), about=about[id(step)],
                sign=Reason(
                    "{field} is {value}, and the opposite is stated", value="true" if value else "false",
                    field=part(f"{label(step.call.name)}.{label(name)}"),
                ),
            )  # fmt: skip


def _leaves(value: Json) -> Iterator[tuple[str, str, bool]]:
    """The booleans of a result under a name of one word: the name, the word, the value."""
    waiting, left = [value], _MOST_LEAVES
    while waiting and left:
        left -= 1
        one = waiting.pop()
        if isinstance(one, dict):
            for name, inner in one.items():
                words = [word for word in _CAMEL.sub("_", name).casefold().split("_") if word not in _LEADING]
                if isinstance(inner, bool) and len(words) == 1 and _WORD.match(words[0]):
                    yield name, words[0], inner
                elif isinstance(inner, dict | list):
                    waiting.append(inner)
        elif isinstance(one, list):
            waiting += one


def _failures(calls: Sequence[CallStep]) -> Iterator[_Shown]:
    """The failed calls with an effect, after which no successful call may have repaired it."""
    repaired = max((at for at, step in enumerate(calls) if _may_make_good(step)), default=-1)
    for step in calls[repaired + 1 :]:
        if step.failure is None:
            continue
        verbs = _ACTIONS.intersection(_name_words(step))
        about = _about(step) if verbs else frozenset()
        for verb in verbs:
            yield _Shown(
                step=step, opposite=(_IS_DONE, verb), about=about,
                sign=Reason("{tool} failed, and success is stated", tool=part(label(step.call.name))),
            )  # fmt: skip


def _may_make_good(step: CallStep) -> bool:
    return step.failure is None and _READING.search(_CAMEL.sub("_", step.call.name).casefold()) is None


def _name_words(step: CallStep) -> list[str]:
    return re.split(r"[\W_]+", _CAMEL.sub("_", step.call.name).casefold())


def _about(step: CallStep) -> frozenset[str]:
    """The words of a call's name, its arguments and its result."""
    texts = (*texts_in(decoded(step.call.arguments)), *texts_in(decoded(step.call.result)))
    words = {word.casefold() for text in texts for word in _WORDS.findall(text[:_READ])}
    return frozenset(words.union(_name_words(step)) - STOPWORDS)
