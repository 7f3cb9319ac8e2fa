"""Transcript index: one transcript, indexed once, in which claims are confirmed or contradicted."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from .assertion import Assertions
from .claims import Claim, stems, words_of
from .facts import NumberInText, dates, numbers, same_date, timestamps
from .known_figures import KnownFigures
from .lexicon import ACTS, DISAVOWALS, NEGATIONS
from .mention import SpokenNames
from .numerals import spoken_numbers
from .text import WordIndex, normalise, tokens
from .transcript import Moment

MAX_TRANSCRIPT = 500_000
"""Longest transcript, in characters, for lexical answers: some eight hours of speech."""
_WINDOW = 1
"""A description may draw on a moment and this many moments on either side: question, answer, confirmation."""
_CITES = 0.5
"""Share of a description's words that must occur in one place for a citation."""
_BORNE_OUT = 0.65
"""The same for a proof."""
_AT_MOMENT = 0.34
"""Share of a description's words that must occur near the time that it names."""
_MAX_PLACES = 2000
"""Most places kept for one word: a word in that many moments does not distinguish them."""
_NEGATION_REACH = 3
"""Words before a matched word in which a negation reverses it, and after it in which a disavowal does."""
_TALKED_OF = 1 / 3
"""Share of a denial's words that the transcript must hold, unless they name an act of the lexicon."""
BUDGET = 1_000_000
"""Most work for all reasons of one case, in visited places (about a microsecond each).

A long scorecard of a call of an hour costs some ten thousand. The cost of a reason does not depend on earlier reasons,
so whether all reasons of a case fit does not depend on their order.
"""
_MOST_WORDS = 2_000
"""Most words of one moment that are searched for another number."""
_PRICE_OF_NUMBER = 4
"""Work of reading one number of the transcript; a transcript full of numbers leaves less for its reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptMatch:
    """The place of the transcript that fits a description best, and how far it supports the description.

    ``words`` are the description's words that occur there; ``cites``: they suffice for a citation. ``fits_moment``: the
    description occurs at the time that it names. ``fault`` is why the place does not prove it, None where it does.
    """

    words: tuple[str, ...] = ()
    cites: bool = False
    fits_moment: bool = True
    fault: str | None = None


class TranscriptIndex:
    """A transcript's moments with their words, built in linear time; its look-ups take no more than ``BUDGET``."""

    def __init__(self, text: str, moments: Sequence[Moment]) -> None:
        self._moments = moments
        self._index = WordIndex(text)
        self._words = [words_of(moment.text) for moment in moments]
        self._spaced = [f" {' '.join(words)} " for words in self._words]
        self._stems = [stems(words) for words in self._words]
        self._where: dict[str, list[int]] = {}
        for at, found in enumerate(self._stems):
            for word in dict.fromkeys(found):
                if len(places := self._where.setdefault(word, [])) < _MAX_PLACES:
                    places.append(at)
        self._acts = self._places_of_acts()
        self._times = {moment.at for moment in moments if moment.at is not None} | set(timestamps(text))
        self._numbers: dict[str, list[tuple[int, NumberInText]]] = {}
        self._spent = 0
        for at, moment in enumerate(moments):
            spoken = [NumberInText(value, frozenset({value})) for value in spoken_numbers(self._words[at])]
            for number in (*numbers(moment.text), *spoken):
                self._spent += _PRICE_OF_NUMBER
                for value in number.values:
                    if len(stated := self._numbers.setdefault(value, [])) < _MAX_PLACES:
                        stated.append((at, number))
        self._digits = _joined_digits(normalise(text))
        self._dates = list(dict.fromkeys(dates(text)))
        self._matches: dict[Claim, TranscriptMatch] = {}
        self._costs: dict[str, bool] = {}
        self._length = len(text)
        self._scripts = _scripts(text[:5000])
        self._roles = {moment.role for moment in moments} - {None}
        self._text = text

    @cached_property
    def assertions(self) -> Assertions:
        """The assertions, clause by clause."""
        return Assertions(self._moments)

    @cached_property
    def names(self) -> SpokenNames:
        """The names that the text gives."""
        return SpokenNames(self._text, [moment.speaker or "" for moment in self._moments], self._index)

    @cached_property
    def figures(self) -> KnownFigures:
        """The numbers that the text gives."""
        return KnownFigures(self._text)

    def together(self, content: frozenset[str]) -> tuple[list[list[str]], float]:
        """The words of the moments around the place with most of these stems, and the share of stems there."""
        tally: Counter[int] = Counter()
        for stem in content:
            tally.update(_around(self._where.get(stem, ())))
        if not tally:
            return [], 0.0
        centre, number = max(tally.items(), key=lambda item: (item[1], -item[0]))
        around = self._words[max(0, centre - _WINDOW) : centre + _WINDOW + 1]
        return [words[:_MOST_WORDS] for words in around], number / len(content)

    def has_dates(self) -> bool:
        """Whether the transcript gives any date."""
        return bool(self._dates)

    def can_read(self, reason: str) -> bool:
        """Whether the budget is not yet spent; reading the reason, once, is charged to it."""
        if reason not in self._costs:
            self._costs[reason] = self._charge(len(reason))
        return self._costs[reason]

    def can_check(self, reason: str, found: Iterable[Claim]) -> bool:
        """Whether looking up a reason's claims is within the budget; it is charged once, before the look-ups."""
        key = f"\x00{reason}"
        if key not in self._costs:
            self._costs[key] = self._charge(sum(map(self._cost, found)))
        return self._costs[key]

    def _charge(self, cost: int) -> bool:
        self._spent += cost
        return self._spent <= BUDGET

    def _cost(self, claim: Claim) -> int:
        """An upper estimate of the places that checking this claim visits."""
        visited = sum(len(self._places_of(unit, claim)) for unit in self._units(claim))
        scans = len(claim.quotes) + bool(claim.stamps) + len(claim.names) + len(claim.numbers)
        scan = len(self._moments) // 20 + self._length // 1000
        return 20 + 2 * visited + scans * scan + len(claim.dates) * len(self._dates)

    def is_foreign_to(self, claim: Claim) -> bool:
        """Whether the claim's words are in a script that the transcript does not use, so that words cannot decide."""
        written = {_script(word[0]) for word in claim.content if not word[0].isdigit()}
        differ = bool(written) and bool(self._scripts) and written.isdisjoint(self._scripts)
        return differ and not any(self._places_of(unit, claim) for unit in self._units(claim))

    def has_word(self, word: str) -> bool:
        """Whether this word occurs anywhere."""
        return self._index.has_word(word)

    def uses_script_of(self, word: str) -> bool:
        """Whether the transcript uses the word's script."""
        return _script(word[0]) in self._scripts

    @cached_property
    def has_times(self) -> bool:
        """Whether any of its times can be read; otherwise a time in a reason can be neither confirmed nor refuted."""
        return any(moment.at is not None for moment in self._moments)

    def quotes_at(self, claim: Claim) -> bool:
        """Whether each quote of a claim occurs word for word in a moment at one of the claim's times."""
        return bool(claim.quotes) and all(
            any(moment.at in claim.stamps and moment.role in (None, claim.role or moment.role) for moment in places)
            for places in map(self._moments_with, claim.quotes)
        )

    def fault_of_anchors(self, claim: Claim) -> str | None:
        """A time stamp that does not exist, or a quote that was not spoken, or at another time or by another party."""
        for at in claim.stamps:
            if at not in self._times:
                return f"the time {at // 60:02}:{at % 60:02} does not stand in the transcript"
        for quote in claim.quotes:
            if not self.has_quote(quote):
                return f"{quote[:60]!r} does not stand in the transcript"
            places = self._moments_with(quote)
            if claim.stamps and places and not any(moment.at in claim.stamps for moment in places):
                return f"{quote[:60]!r} was not said at that time"
            if claim.role and places and all(moment.role not in (None, claim.role) for moment in places):
                return f"{quote[:60]!r} was not said by the {claim.role}"
        return None

    def fault_of_facts(self, claim: Claim) -> str | None:
        """A number, date or name that the transcript lacks."""
        for number in claim.numbers:
            if not self._has_number(number):
                return f"the number {number.text[:30]} does not stand in the transcript"
        if day := self._lacks_day(claim):
            return f"the date {day} does not stand in the transcript"
        for name in claim.names:
            if not all(map(self._index.has_word, tokens(name))):
                return f"the name {name[:40]} does not stand in the transcript"
        return None

    def lacks_date(self, day: frozenset[str]) -> bool:
        """Whether no date of the transcript can be this one."""
        return not any(same_date(day, other) for other in self._dates)

    def _lacks_day(self, claim: Claim) -> str | None:
        return next((min(day) for day in claim.dates if self.lacks_date(day)), None)

    def talks_of(self, claim: Claim) -> bool:
        """Whether a denial concerns a topic of this transcript, or an act with known phrases.

        That the agent did not dance the tango is true of every call and proves nothing.
        """
        units = self._units(claim)
        known = [unit for unit in units if unit.startswith(_ACT) or self._places_of(unit, claim)]
        return bool(known or (claim.acts and not units)) and len(known) >= _TALKED_OF * len(units)

    def match(self, claim: Claim) -> TranscriptMatch:
        """The best place for a claim's description, and whether it suffices for a citation and for a proof."""
        found = self._matches.get(claim)
        if found is None:
            found = self._matches[claim] = self._match(claim)
        return found

    def _match(self, claim: Claim) -> TranscriptMatch:
        if not claim.content or self.is_foreign_to(claim):
            return TranscriptMatch()
        places, matched = self._best(claim)
        ratio = len(matched) / len(self._units(claim))
        enough = len(matched) >= 2 or (
            len(matched) == 1 and (claim.reports or bool(claim.acts & self._performed(claim)))
        )
        return TranscriptMatch(
            words=tuple(sorted(_spelt_out(matched, claim))),
            cites=enough and ratio >= _CITES and self._is_by(claim, places, matched),
            fits_moment=self._fits(claim),
            fault=self._doubt(ratio, self._by(claim.role, places), _spelt_out(matched, claim)),
        )

    def _doubt(self, ratio: float, places: Iterable[int], matched: frozenset[str]) -> str | None:
        if ratio < _BORNE_OUT:
            return "part of what it describes does not stand in the transcript"
        if self._denied(places, matched):
            return "the transcript says the opposite"
        return None

    def _fits(self, claim: Claim) -> bool:
        """Whether a description with a time stamp occurs at that time or next to it."""
        if not claim.stamps:
            return True
        near = {
            place
            for at, moment in enumerate(self._moments)
            if moment.at in claim.stamps
            for place in range(at - _WINDOW, at + _WINDOW + 1)
        }
        if not near:
            # The time stands somewhere in the text, but no moment carries it: nothing to hold against the claim.
            return True
        there = [unit for unit in self._units(claim) if not near.isdisjoint(self._places_of(unit, claim))]
        return len(there) / len(self._units(claim)) >= _AT_MOMENT

    def _best(self, claim: Claim) -> tuple[tuple[int, ...], frozenset[str]]:
        """The window with most of the content.

        Ties go to the window in which the claim's speaker said the most.
        """
        tally: Counter[int] = Counter()
        by_named: Counter[int] = Counter()
        places_of: dict[str, list[int]] = {}
        for unit in self._units(claim):
            places = self._places_of(unit, claim)
            places_of[unit] = places
            tally.update(_around(places))
            by_named.update(_around(self._by(claim.role, places)))
        if not tally:
            return (), frozenset()
        centre = max(tally, key=lambda at: (tally[at], by_named[at], -at))
        window = tuple(at for at in range(centre - _WINDOW, centre + _WINDOW + 1) if 0 <= at < len(self._moments))
        return window, frozenset(unit for unit, places in places_of.items() if not set(window).isdisjoint(places))

    def _units(self, claim: Claim) -> frozenset[str]:
        """The units of a claim that are searched in one place: its content words, and its numbers (as ``#49``).

        All words that name one act of speech are one unit (as ``@0``): to verify and to identify are not two things.
        """
        named = {act: claim.content & _ACT_STEMS[act] for act in claim.acts}
        figures = {f"#{number.text}" for number in claim.numbers if not self._is_dictated(number)}
        acts = {f"{_ACT}{act}" for act, words in named.items() if words}
        return claim.content.difference(*named.values()) | figures | acts

    def _by(self, role: str | None, places: Iterable[int]) -> list[int]:
        """The places at which this party, or an unknown one, speaks."""
        return [at for at in places if role is None or self._moments[at].role in (None, role)]

    def _places_of(self, word: str, claim: Claim) -> list[int]:
        """The places of a number or a word, or where an act of speech is named, or performed by the named party."""
        if word.startswith("#"):
            same = dict.fromkeys(number for number in claim.numbers if f"#{number.text}" == word)
            return [at for number in same for at in self._places_of_number(number)]
        if not word.startswith(_ACT):
            return self._where.get(word, [])
        act = int(word.removeprefix(_ACT))
        stated = [at for cue in claim.content & _ACT_STEMS[act] for at in self._where.get(cue, ())]
        return sorted({*stated, *self._by(claim.role, self._acts[act])})

    def _places_of_number(self, number: NumberInText) -> Iterator[int]:
        return (at for value in number.values for at, other in self._numbers.get(value, ()) if number.agrees(other))

    def _performed(self, claim: Claim) -> frozenset[int]:
        return frozenset(act for act in claim.acts if self._by(claim.role, self._acts[act]))

    def _is_by(self, claim: Claim, places: Iterable[int], matched: frozenset[str]) -> bool:
        """Whether the claim's speaker said any of the matching words; yes where speakers are unknown."""
        if claim.role is None or claim.role not in self._roles:
            return True
        theirs = set(self._by(claim.role, places))
        return any(not theirs.isdisjoint(self._places_of(unit, claim)) for unit in matched)

    def _denied(self, places: Iterable[int], matched: frozenset[str]) -> bool:
        """Whether every matched word at these places stands shortly after a negation."""
        seen = False
        for place in places:
            words, found = self._words[place], self._stems[place]
            if len(words) != len(found):
                return False
            for at, word in enumerate(found):
                if word in matched:
                    seen = True
                    before, after = words[max(0, at - _NEGATION_REACH) : at], words[at + 1 : at + 1 + _NEGATION_REACH]
                    if NEGATIONS.isdisjoint(before) and DISAVOWALS.isdisjoint(after):
                        return False
        return seen

    def has_quote(self, quote: str) -> bool:
        """Whether the transcript has a quotation word for word; an ellipsis in it stands for omitted words."""
        return all(self._index.has_phrase(part) for part in _parts(quote) if tokens(part))

    def _moments_with(self, quote: str) -> list[Moment]:
        words = words_of(next((part for part in _parts(quote) if tokens(part)), quote))
        phrase = f" {' '.join(words)} "
        return [moment for moment, spaced in zip(self._moments, self._spaced, strict=True) if phrase in spaced]

    def _has_number(self, number: NumberInText) -> bool:
        if any(value in self._numbers for value in number.values):
            return next(self._places_of_number(number), None) is not None
        return self._is_dictated(number)

    def _is_dictated(self, number: NumberInText) -> bool:
        """Whether the digits of a long number occur here in groups, as people spell them out."""
        return number.text.isdigit() and len(number.text) >= 4 and number.text in self._digits

    def _places_of_acts(self) -> list[list[int]]:
        """The places of each act of speech; a moment is searched only for phrases whose first word it has."""
        found: list[list[int]] = [[] for _ in ACTS]
        for at, (words, spaced) in enumerate(zip(self._words, self._spaced, strict=True)):
            for word in _PHRASE_BEGINNINGS.intersection(words):
                for act, phrase in _PHRASES_BY_WORD[word]:
                    places = found[act]
                    if len(places) < _MAX_PLACES and places[-1:] != [at] and phrase in spaced:
                        places.append(at)
        return found


_PHRASES_BY_WORD: dict[str, list[tuple[int, str]]] = {}
for _act, (_, _phrases) in enumerate(ACTS):
    for _phrase in map(tokens, _phrases):
        _PHRASES_BY_WORD.setdefault(_phrase[0], []).append((_act, f" {' '.join(_phrase)} "))
_PHRASE_BEGINNINGS = frozenset(_PHRASES_BY_WORD)
_ACT_STEMS = tuple(frozenset(stems(list(cues))) for cues, _ in ACTS)

_ACT = "@"
"""Prefix of the mark of an act of speech among units."""


def _spelt_out(units: frozenset[str], claim: Claim) -> frozenset[str]:
    """Units with the claim's own words in place of an act's mark."""
    return frozenset(
        word
        for unit in units
        for word in (claim.content & _ACT_STEMS[int(unit[1:])] if unit.startswith(_ACT) else (unit,))
    )


def _around(places: Iterable[int]) -> set[int]:
    return {at + shift for at in places for shift in range(-_WINDOW, _WINDOW + 1)}


def _parts(quote: str) -> list[str]:
    return quote.replace("…", "...").split("...")


def _joined_digits(text: str) -> str:
    """The text without single spaces and hyphens between digits: numbers that are dictated digit by digit."""
    kept = [character if character.isdigit() else "" if character in " -" else "\n" for character in text]
    return "".join(kept)


def _script(character: str) -> str:
    return unicodedata.name(character, "?").partition(" ")[0]


def _scripts(text: str) -> frozenset[str]:
    return frozenset(_script(word[0]) for word in tokens(text) if word[0].isalpha())
