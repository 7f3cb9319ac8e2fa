"""A reason split into claims, each with its quotes, times, numbers and names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from .facts import NumberInText, Quote, found_dates, names, numbers, quotes, timestamps
from .lexicon import (
    ABBREVIATIONS,
    ACTS,
    AGENT_WORDS,
    CONTRASTS,
    CUSTOMER_WORDS,
    NEGATIONS,
    PARTICLES,
    REPORTING,
    RUBRIC_WORDS,
    STOPWORDS,
    UNSPACED_NEGATIONS,
    VAGUE,
)
from .numerals import CURRENCIES, NUMBER_WORDS, spoken_figures
from .text import fold_digits, is_unspaced, normalise, pieces, tokens, without_ending

MAX_REASON = 20_000
"""Most characters of a reason that are read; a scorecard's reason has some hundred."""

MAX_CLAIMS = 40
"""Most claims and most quotations of a reason that are looked up."""
_MAX_CONTENT = 60
_REACH = 3
"""Words after a *not* in which a verb of omission cancels it (*did not fail to*)."""
_LONG_QUOTE = 4
"""Fewest words of a quotation that consists of ordinary words alone (*how can I help*)."""
_QUOTED = "\x00"

_SENTENCES = re.compile(r"(?<=[.!?;।。！？])(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bMrs\.)\s+|(?<=[।。！？])|\n")
_STAMP = re.compile(r"(?<![\d:.])\d{1,3}:[0-5]\d(?::[0-5]\d)?(?![\d:])")
_MARKS_GIVEN = re.compile(
    r"\b\d+(?:\.\d+)? ?/ ?\d+\b|\b\d+(?:\.\d+)? (?:points?|marks?|out of \d+|punkte?n?|puntos?|अंक)"
    r"|\b(?:scor(?:e|ed|ing)|marks?|rating|rated|punkte) (?:is |of |as |at |a )?\d+(?:\.\d+)?"
)
_GERMAN = frozenset(
    ("der", "die", "das", "den", "dem", "des", "und", "nicht", "ein", "eine", "hat", "kunde", "kunden", "wurde")
)
_SPOKEN_TIME = re.compile(
    r"(?<=\bat )(?:(\d{1,2}) ?min(?:ute)?s?(?: and)?(?: (\d{1,2}) ?s(?:ec(?:ond)?s?)?)?"
    r"|(\d{1,4}) ?s(?:ec(?:ond)?s?)?)\b",
    re.IGNORECASE,
)
_OWNERS = frozenset(("of", "des", "del", "du"))
_UNSPACED_NOT = re.compile("|".join(map(re.escape, UNSPACED_NEGATIONS)))
_TITLES = frozenset(("herr", "herrn", "frau", "mr", "mrs", "ms", "dr"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One clause. ``content`` are stems of content words; ``acts`` are indexes of the named acts of speech.

    ``role`` is the party that it is about. A negated claim states that something did not happen.
    """

    quotes: tuple[str, ...]
    stamps: tuple[int, ...]
    numbers: tuple[NumberInText, ...]
    dates: tuple[frozenset[str], ...]
    names: tuple[str, ...]
    content: frozenset[str]
    acts: frozenset[int]
    reports: bool
    negated: bool
    role: str | None

    @property
    def anchored(self) -> bool:
        """Whether it refers to a moment or to words, rightly or wrongly."""
        return bool(self.quotes or self.stamps)

    @property
    def states_something(self) -> bool:
        return self.anchored or bool(self.content or self.acts or self.numbers or self.dates)


def stem(word: str) -> str:
    """A crude stem for all languages: a common ending is removed, then five characters are kept.

    >>> {stem(word) for word in ("verified", "verify", "verification")}
    {'verif'}
    """
    if word.isdigit() or is_unspaced(word[0]):
        return word
    return without_ending(word)[:5]


def words_of(text: str) -> list[str]:
    """The words of a text for comparison, abbreviations written out (*DOB* is *date of birth*)."""
    return [part for word in tokens(text) for part in ABBREVIATIONS.get(word, (word,))]


def stems(words: list[str]) -> list[str]:
    """Stems of words; runs of unspaced scripts as pairs of characters."""
    return [stem(word) for word in pieces(words)]


def claims(reason: str) -> tuple[Claim, ...]:
    """The claims of a reason, sentence by sentence, split where a contrast (*but*) begins."""
    return _claims(reason[:MAX_REASON])


@lru_cache(maxsize=64)
def _claims(reason: str) -> tuple[Claim, ...]:
    # Each reason is read twice, once for each of two questions.
    reason = fold_digits(reason)
    quoted = [quote for quote in quotes(reason) if _is_quotation(quote.text)][:MAX_CLAIMS]
    masked = reason.replace(_QUOTED, " ")
    for quote in reversed(quoted):
        masked = f"{masked[: quote.start]} {_QUOTED} {masked[quote.end :]}"
    masked = _UNSPACED_NOT.sub(" not ", _SPOKEN_TIME.sub(_as_stamp, masked))
    return tuple(islice((claim for claim in _read(masked, quoted) if claim.states_something), MAX_CLAIMS))


def _read(masked: str, quoted: list[Quote]) -> Iterator[Claim]:
    """The claims of a text, each quotation in it replaced by one mark."""
    german = len(_GERMAN.intersection(tokens(masked))) >= 2
    open_quotes = iter(quoted)
    for clause in _clauses(masked):
        mine = tuple(next(open_quotes).text for _ in range(clause.count(_QUOTED)))
        yield _claim(clause.replace(_QUOTED, " "), mine, german=german)


def _is_quotation(text: str) -> bool:
    """Whether words in quotation marks are distinctive enough to be looked up as a quotation.

    A single ordinary word, or two or three that carry no content, are emphasis; a code (*ORD-7731*) is a quotation.
    """
    words = tokens(text)
    if any(character.isdigit() for character in text):
        return True
    if len(words) == 1:
        return is_unspaced(words[0][0]) and len(words[0]) > 1
    return len(words) >= _LONG_QUOTE or any(word not in VAGUE and word not in STOPWORDS for word in words)


def _clauses(text: str) -> Iterator[str]:
    for sentence in _SENTENCES.split(text):
        words: list[str] = []
        for word in sentence.split():
            if normalise(word.strip(",")) in CONTRASTS and words:
                yield " ".join(words)
                words = []
            words.append(word)
        if words:
            yield " ".join(words)


def _claim(clause: str, quoted: tuple[str, ...], *, german: bool) -> Claim:
    stamps = tuple(timestamps(clause))
    plain = _STAMP.sub(" ", clause)
    normal = normalise(plain)
    dated = _apart(found_dates(normal))
    # the text without the marks that the reason itself gives ("5/5", "score of 5"): they are no facts of the call
    rest = _MARKS_GIVEN.sub(" ", _cut(normal, [(start, end) for _, start, end in dated]))
    words = words_of(rest)
    reported = [word for word in words if not _is_light(word) and not word.isdigit()]
    acts = frozenset(index for index, (cues, _) in enumerate(ACTS) if not cues.isdisjoint(words))
    return Claim(
        quotes=quoted,
        stamps=stamps,
        numbers=(*numbers(rest), *(NumberInText(value, frozenset({value})) for value in spoken_figures(words))),
        dates=tuple(readings for readings, _, _ in dated if readings),
        names=tuple(_names(plain, german=german)),
        content=frozenset(stems(reported)[:_MAX_CONTENT]),
        acts=acts,
        reports=any(word in REPORTING for word in words),
        negated=_is_negated(words),
        role=_role(words),
    )


def _as_stamp(match: re.Match[str]) -> str:
    minutes, seconds = int(match[1] or 0), int(match[2] or match[3] or 0)
    return f"{minutes + seconds // 60:02}:{seconds % 60:02}"


def _is_negated(words: list[str]) -> bool:
    """Whether a clause denies something. *Did not fail to* denies nothing, nor does *not only*."""
    taken_back: set[int] = set()
    for at, word in enumerate(words):
        if word in PARTICLES:
            following = range(at + 1, min(at + 1 + _REACH, len(words)))
            undone = [other for other in following if words[other] in NEGATIONS and words[other] not in PARTICLES]
            if undone or words[at + 1 : at + 2] == ["only"]:
                taken_back.update((at, *undone))
    # What stands before a word taken back in the same breath is one negation with it (*didn t fail*, *n a pas omis*).
    for at in sorted(taken_back, reverse=True):
        if words[at] in PARTICLES and at and words[at - 1] in PARTICLES:
            taken_back.add(at - 1)
    return any(word in NEGATIONS and at not in taken_back for at, word in enumerate(words))


def _is_light(word: str) -> bool:
    return (
        (len(word) < 3 and word.isascii())
        or word in NUMBER_WORDS
        or word in CURRENCIES
        or word in STOPWORDS
        or word in VAGUE
        or word in RUBRIC_WORDS
        or word in REPORTING
        or word in NEGATIONS
        or word in AGENT_WORDS
        or word in CUSTOMER_WORDS
    )


def _role(words: list[str]) -> str | None:
    """The party that the clause is about: the one named first.

    A mere owner does not count (*the customer's date of birth*, *of the customer*), unless it is the agent and nobody
    else is named: *the agent's greeting* is an act of the agent.
    """
    owner = None
    for at, word in enumerate(words):
        if words[at + 1 : at + 2] == ["s"] or not _OWNERS.isdisjoint(words[max(0, at - 2) : at]):
            owner = owner or ("agent" if word in AGENT_WORDS else None)
        elif word in AGENT_WORDS:
            return "agent"
        elif word in CUSTOMER_WORDS:
            return "customer"
    return owner


def _names(plain: str, *, german: bool) -> Iterator[str]:
    """Capitalised words that may be names. German writes every noun so: there, only after a title."""
    previous = ""
    for word in plain.split():
        bare = word.strip("()[],.;:!?\"'")
        if german and normalise(previous) in _TITLES and bare[:1].isupper():
            yield bare
        previous = bare.rstrip(".")
    if not german:
        for name in names(plain):
            if not _is_light(normalise(name)) and not name.isupper() and normalise(name) not in _TITLES:
                yield name


def _apart(dated: Iterable[tuple[frozenset[str], int, int]]) -> list[tuple[frozenset[str], int, int]]:
    """Dates in order, without those that begin within another one: *5 May 10* is not the tenth of May as well."""
    kept: list[tuple[frozenset[str], int, int]] = []
    for each in sorted(dated, key=lambda each: each[1]):
        if not kept or each[1] >= kept[-1][2]:
            kept.append(each)
    return kept


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        text = f"{text[:start]} {text[end:]}"
    return text
