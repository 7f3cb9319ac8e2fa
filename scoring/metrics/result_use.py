"""Whether a tool's result was used. A lexical estimate: the output shows something that only the result brought in.

Of a run it is the share of results of which something shows in later steps. An argument's value likewise has an origin:
the user's message, or an earlier call's result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import cut_at
from sidejudge.scoring.lexical.facts import numbers
from sidejudge.scoring.lexical.lexicon import RUBRIC_WORDS, STOPWORDS, VAGUE, word_list
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.lexical.text import is_unspaced, pieces, tokens
from sidejudge.scoring.result.reason import Reason, own, part
from sidejudge.scoring.result.result import Method, NotApplicable, Result, Scored, Unavailable, at_least
from sidejudge.scoring.trace.jsontext import decoded, mapping
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.trace.span import Json, ToolCall
from sidejudge.scoring.trace.tool_spans import canonical

from .run_ending import UNKNOWN_CALLS, run_metric
from .run_steps import CallStep, RunSteps, run_steps, signs

_ENOUGH_PIECES = 3
"""Fewest pairs of characters to share in scripts without spaces, or all pairs of a shorter side."""
_MAX_CHARACTERS = 200_000
_PLAIN = word_list(
    "able accepted answer available complete completed count data date done error false find found id info information",
    "item items know list match matched matches name none null number ok okay page query result results return",
    "returned search searched sorry status string success text tool total true type",
    "unable unknown url value values yes no not never new one two first last use used using show shown",
    "antwort daten ergebnis ergebnisse fehler gefunden information leider unbekannt ja nein nicht kein keine",
    "datos encontrado error información resultado resultados respuesta desconocido sí no ningún ninguna",
    "जानकारी परिणाम उत्तर त्रुटि हाँ नहीं",
)
"""Words that results and answers share by chance."""
_COMMON = STOPWORDS | VAGUE | RUBRIC_WORDS | _PLAIN


def unused_results(case: Case, calls: Sequence[ToolCall]) -> tuple[list[str], list[str]]:
    """Names of tools whose result the output does not use, and of tools where that is unknown.

    A result is used when the output has one of its numbers or words (names included) that is no common word and occurs
    neither in the case's input nor in the call's own arguments. Short words and single digits count only for a result
    that has nothing longer. For a result that brings nothing new the use is unknown.
    """
    requested = _read(case.input)
    shown = _read(decoded(case.model_output)).without(requested)
    unused: list[str] = []
    unknown: list[str] = []
    for call in calls:
        own = _read(decoded(call.arguments))
        new = _read(decoded(call.result)).without(requested).without(own).distinctive()
        if not new:
            unknown.append(call.name)
        elif not new.shows_in(shown.words, shown.pairs, shown.figures):
            unused.append(call.name)
    return list(dict.fromkeys(unused)), list(dict.fromkeys(unknown))


class LaterWords:
    """The words and numbers of a run's messages and calls, gathered from its end towards its beginning.

    ``requested`` is the input of the run, whose words a result may share without having been used.
    """

    def __init__(self, requested: Json) -> None:
        self._requested = _read_quickly(requested)
        self._words: set[str] = set()
        self._pairs: set[str] = set()
        self._figures: set[str] = set()

    def add(self, value: Json) -> None:
        """Add a message that precedes all added so far."""
        if value is not None:
            self._add(_read_quickly(decoded(value)))

    def _add(self, content: _Content) -> None:
        self._words |= content.words - self._requested.words
        self._pairs |= content.pairs - self._requested.pairs
        self._figures |= content.figures - self._requested.figures

    def bear_out(self, call: ToolCall, *, result: bool = True) -> bool | None:
        """Whether the added messages hold anything of a call's result; then the call's arguments are added as well.

        Returns:
            None where the result brings nothing to look for, and without ``result``.
        """
        arguments = _read_quickly(decoded(call.arguments))
        shown = None
        if result:
            found = _read_quickly(decoded(call.result)).without(self._requested).without(arguments)
            new = found.distinctive()
            shown = new.shows_in(self._words, self._pairs, self._figures) if new else None
        self._add(arguments)
        return shown


@record(frozen=True, slots=True, kw_only=True)
class _Content:
    """Words, pairs of characters of scripts without spaces, and values of numbers; common words are left out."""

    words: frozenset[str]
    pairs: frozenset[str]
    figures: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.words or self.pairs or self.figures)

    def without(self, other: _Content) -> _Content:
        if not other:
            return self
        return _Content(
            words=self.words - other.words, pairs=self.pairs - other.pairs, figures=self.figures - other.figures
        )

    def distinctive(self) -> _Content:
        """Contents that are unlikely to be shared by chance: longer words and numbers; where there are none, all."""
        long = _Content(
            words=frozenset([word for word in self.words if len(word) > 2 or not word.isascii()]),
            pairs=self.pairs,
            figures=frozenset([figure for figure in self.figures if len(figure) > 1]),
        )
        return long or self

    def shows_in(self, words: AbstractSet[str], pairs: AbstractSet[str], figures: AbstractSet[str]) -> bool:
        """Whether any of its words or figures, or enough of its pairs, are among these."""
        if not self.words.isdisjoint(words) or not self.figures.isdisjoint(figures):
            return True
        enough = min(_ENOUGH_PIECES, len(self.pairs), len(pairs))
        return enough > 0 and len(self.pairs & pairs) >= enough


def _read(value: Json) -> _Content:
    text = "\n".join(_leaves(value))[:_MAX_CHARACTERS]
    found = {word for word in pieces(tokens(text)) if not word.isdigit() and word not in _COMMON}
    pairs = frozenset(word for word in found if is_unspaced(word[0]))
    return _Content(
        words=frozenset(found) - pairs,
        pairs=pairs,
        figures=frozenset(reading for number in numbers(text) for reading in number.values),
    )


def _read_quickly(value: Json) -> _Content:
    """Read ASCII by one expression, a tenth of the work: a unit or a date counts as its words and figures."""
    text = (value if isinstance(value, str) else "\n".join(_leaves(value)))[:_MAX_CHARACTERS]
    if not text.isascii():
        return _read(text)
    text = text.lower()
    found = _WORDS.findall(_GROUPED.sub("", text) if "," in text else text)
    figures = frozenset([_canonical(word) for word in found if word[0] in _DIGITS])
    return _Content(words=frozenset(found) - figures - _COMMON, pairs=_NONE, figures=figures)


def _canonical(figure: str) -> str:
    """One form for ``84.50`` and ``84.5``, as ``numbers`` writes them."""
    return figure.rstrip("0").rstrip(".") if "." in figure else figure


_WORDS = re.compile(r"\d+(?:\.\d+)?|[a-z][a-z0-9]*")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
"""The comma between groups of digits."""
_DIGITS = frozenset("0123456789")
_NONE: frozenset[str] = frozenset()


def _leaves(value: Json) -> Iterator[str]:
    """Texts and numbers anywhere in a JSON value; keys are names of fields, not content."""
    todo: list[Json] = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield str(one)
        else:
            todo.extend(_inside(one))


def _inside(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return reversed(value.values())
    return reversed(value) if isinstance(value, list) else ()


_LONGEST = 200_000
"""Most characters of the input and of each result that are searched."""
_SEARCHED = 3
"""Fewest characters of a value that is searched for."""
_A_TEXT: Final = 50
"""The time to begin with a text, in characters."""
MOST_SEARCHED: Final = 500_000_000
"""Most characters that are searched for the arguments of one case, text by text and value by value: some 0.5 s."""


def unfounded_values(
    case: Case, calls: Sequence[ToolCall], wanted: Mapping[str, Mapping[str, Sequence[str]]]
) -> tuple[list[Reason], bool]:
    """Arguments whose value is in none of the required places, described without the value.

    Args:
        case: The case, for its input.
        calls: Its calls, in order of time.
        wanted: Required places by tool and argument: ``input``, ``results`` (of earlier calls).

    Returns:
        The arguments, and whether all were looked for: the search ends before it takes ``MOST_SEARCHED``.
    """
    found: list[Reason] = []
    if not wanted or case.once(cut_at) is not None:  # what was cut off may hold them
        return found, True
    requested = searchable(case.input) + searchable(case.transcript_text)
    before: list[str] = []
    length = searched = 0
    for call in calls:
        given = mapping(decoded(call.arguments))
        for name, places in wanted.get(call.name, {}).items():
            sought = tuple(_sought(given.get(name)))
            searched += len(sought) * (("input" in places) * len(requested) + ("results" in places) * length)
            if searched > MOST_SEARCHED:
                return found, False
            texts = [requested] if "input" in places else []
            texts += before if sought and "results" in places else []
            if not _stand_in(sought, texts):
                why = "{tool}.{argument}: its value stands in no {places}"
                where = own(" and no ".join(places))
                found.append(Reason(why, tool=part(label(call.name)), argument=part(label(name)), places=where))
        if call.result is not None:
            before.append(searchable(call.result))
            length += len(before[-1]) + _A_TEXT
    return found, True


def searchable(value: Json) -> str:
    """A value as a text to search for others; the thousands of its numbers are not set apart."""
    text = (value if isinstance(value, str) else "" if value is None else canonical(value))[:_LONGEST].casefold()
    return _GROUPED.sub("", text) if "," in text else text


def stands_in(value: Json, texts: Sequence[str]) -> bool:
    """Whether one of the texts contains a value, or each value of a list; true for values too short to search for.

    A number is found as people write it: 1234.0 in ``1,234``.
    """
    return _stand_in(_sought(value), texts)


def _stand_in(sought: Iterable[str], texts: Sequence[str]) -> bool:
    return all(any(wanted in text for text in texts) for wanted in sought)


def _sought(value: Json) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _sought(one)
    elif not (isinstance(value, bool) or value is None or isinstance(value, dict)):
        whole = isinstance(value, float) and value.is_integer()
        wanted = searchable(str(int(value) if whole else value))
        if len(wanted) >= _SEARCHED:
            yield wanted


MOST_CHARACTERS: Final = 100_000
"""Most characters of results and outputs that are searched for one run: some milliseconds of work."""
_NO_RESULT: Final = NotApplicable(Reason("no tool returned a result that is in the trace"))
_NOTHING_DISTINCTIVE: Final = NotApplicable(Reason("no result holds anything distinctive to look for"))


@run_metric(
    formula="1 − unused / results that hold a number or a word that neither the input nor the call's arguments have",
    bands=at_least(good=0.9, acceptable=0.5),
    methods=(Method.LEXICAL,),
    undefined="contents were not captured; not applicable where no result holds anything distinctive",
)
def results_used(case: Case) -> Result:
    """The share of tool results of which something occurs in what follows. An estimate by words and numbers."""
    steps = case.once(run_steps)
    if steps.calls is None:
        return UNKNOWN_CALLS
    if not any(_brings_a_result(step) for step in steps.calls):
        return _NO_RESULT
    if case.model_output is None:
        return Unavailable(Reason("the output is not known"))
    if _size(steps) > MOST_CHARACTERS:
        return NotApplicable(
            Reason("the run holds more than {most} characters, which are not searched", most=MOST_CHARACTERS)
        )
    found, settled = _unused(case, steps)
    if not settled:
        return _NOTHING_DISTINCTIVE
    if found and (most := case.once(cut_at)) is not None:
        why = "texts are cut off at {most} characters: what follows is not known whole"
        return Unavailable(Reason(why, most=most))
    why = "of {n} of {all} results nothing occurs in what follows"
    return Scored(
        value=1.0 - len(found) / settled,
        method=Method.LEXICAL,
        reason=Reason(why, n=len(found), all=settled) if found else "",
        details=signs(found),
    )


def _unused(case: Case, steps: RunSteps) -> tuple[list[tuple[str | None, str]], int]:
    """The results that no later step uses, and the number of checked results. Reads from the end backwards."""
    later = LaterWords(case.input)
    later.add(case.model_output)
    spoken = sorted(steps.models, key=lambda span: span.end_ns)
    found: list[tuple[str | None, str]] = []
    settled = 0
    for step in reversed(steps.calls or ()):
        while spoken and spoken[-1].end_ns >= step.end_ns:
            later.add(spoken.pop().output)
        borne_out = later.bear_out(step.call, result=_brings_a_result(step))
        if borne_out is not None:
            settled += 1
            if not borne_out:
                found.append((step.span_id, f"{label(step.call.name)}: nothing of its result occurs in what follows"))
    return found[::-1], settled


def _brings_a_result(step: CallStep) -> bool:
    return step.failure is None and step.call.result not in (None, "", [], {})


def _size(steps: RunSteps) -> int:
    """About how many characters would be read; structured values count as their texts."""
    held = [*(step.call.result for step in steps.calls or ()), *(span.output for span in steps.models)]
    return sum(len(value) if isinstance(value, str) else len(repr(value)) for value in held if value is not None)
