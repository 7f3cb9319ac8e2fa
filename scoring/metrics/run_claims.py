"""Whether a later answer states the opposite of what a tool returned.

Two opposites are read, in English: a boolean of a result (``"refundable": false`` and *it is refundable*), and a call
that failed and was not made again with success (``book_seat`` fails and *I have booked the seat*).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

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
_IS: Final = rf"\b(?:is|are|was|were|has\s+been|have\s+been)\s+{_ADVERBS}"
_IS_NOT: Final = rf"\b(?:(?:is|are|was|were)\s+(?:\w+\s+)?not|(?:is|are|was|were)n['’]t)\s+{_ADVERBS}"
_ACTING: Final = (
    "add apply approve assign book cancel close confirm create delete deploy email issue order pay post publish"
    " purchase refund register remove rename reserve reset schedule send submit transfer unlock update upload"
)
_ACTIONS: Final = frozenset(_ACTING.split())
_PAST: Final = {
    "pay": "paid", "send": "sent", "reset": "reset", "submit": "submitted", "transfer": "transferred",
    "cancel": "cancell?ed", "apply": "applied",
}  # fmt: skip
_READING: Final = re.compile(
    r"(?:^|[_\W])(?:get|list|search|find|read|look|lookup|fetch|check|query|view|show|browse|retrieve|describe)(?:$|[_\W])"
)
"""Names of tools that change nothing, so that they cannot have repaired a failure."""
_NOTHING: Final = NotApplicable(Reason("no result holds a yes or no, and no call with an effect failed"))


@record(frozen=True, slots=True, kw_only=True)
class _Shown:
    """A fact that a call shows, the words that state its opposite, and the words of its subject."""

    step: CallStep
    opposite: re.Pattern[str]
    negated: bool
    about: frozenset[str]
    sign: Reason

    def is_contradicted(self, sentence: str) -> bool:
        """Whether a sentence states the opposite, plainly, and of the same thing."""
        if self.opposite.search(sentence) is None or _HEDGES.search(sentence) is not None:
            return False
        if not self.negated and _NEGATES.search(sentence) is not None:
            return False
        return not self.about.isdisjoint(map(str.casefold, _WORDS.findall(sentence)))


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
    stated = [(at, sentence) for at, text in answers for sentence in _SENTENCE.split(text)]
    found: list[tuple[str | None, Reason]] = [
        (each.step.span_id, each.sign)
        for each in shown
        if any(at >= each.step.end_ns and each.is_contradicted(sentence) for at, sentence in stated)
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


def _booleans(calls: Sequence[CallStep]) -> Iterator[_Shown]:
    """The booleans by name on which all results agree, each with the last call that returned it."""
    held: dict[str, tuple[set[bool], CallStep, str]] = {}
    for step in calls:
        if step.failure is None:
            for name, word, value in _leaves(decoded(step.call.result)):
                values = held[word][0] if word in held else set[bool]()
                held[word] = values | {value}, step, name
    for word, (values, step, name) in held.items():
        if len(values) == 1:
            (value,) = values
            yield _Shown(
                step=step, opposite=re.compile((_IS_NOT if value else _IS) + word + r"\b", re.IGNORECASE),
                negated=value, about=_about(step) - {word},
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
        for verb in _ACTIONS.intersection(_name_words(step)):
            past = _PAST.get(verb, verb + "d" if verb.endswith("e") else verb + "ed")
            said = (
                rf"\b(?:i|we)(?:['’]ve|\s+have)?\s+{_ADVERBS}{past}\b|\b(?:has|have)\s+{_ADVERBS}been\s+{_ADVERBS}{past}\b"
                rf"|\b(?:is|are)\s+now\s+{past}\b"
            )
            yield _Shown(
                step=step, opposite=re.compile(said, re.IGNORECASE), negated=False, about=_about(step) - {verb},
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
