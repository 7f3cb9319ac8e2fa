"""Assertions: clauses of a transcript that state something, so that a claim with subject, relation and object is found.

A clause is asserted when it is no question and holds no word that reverses a meaning, except those of the claim.
Words that stand close together are not enough: *Ben lent Anna his car* and *Anna lent Ben her car* have the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .lexicon import word_list
from .statement import AGENT, CUSTOMER, TURNS, Statement, read_statement, root
from .text import tokens
from .transcript import Moment

_SENTENCES = re.compile(r"(?<=[.!?;।。！？])\s+|\n")
_CLAUSES = re.compile(r"[,;:–—()।。]\s|\s(?:and|but|because|so that|und|aber|weil|y|pero|porque)\s", re.IGNORECASE)
_FIRST_PERSON = frozenset(("i", "we", "ich", "wir"))
_DETERMINERS = word_list(
    "the a an this that my your our der die das mein meine ihr ihre unser unsere el la los las mi su"
)
_AUXILIARIES = word_list(
    "have has had am is are was were do did m ve s already just habe haben hat bin ist sind war schon ya"
)
_ATTITUDES = frozenset(
    map(
        root,
        word_list(
            "think thought believe hope guess suppose say said tell told heard hear imagine suggest like need",
            "seem nearly",
            "glaube denke hoffe möchte muss sagt sagte creo pienso espero dice dijo parece quiero",
        ),
    )
)
"""Words of opinion and hearsay: a clause with one of them is not asserted."""
_MAX_CLAUSE = 400
_MAX_CANDIDATES = 200
_LEAST = 2
"""Parts besides the subject that a claim must have: a relation and an object. A figure counts as one."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """A clause of a transcript. ``by_speaker``: its subject is *I* or *we*. ``speaker``: label and role, as roots."""

    statement: Statement
    speaker: frozenset[str]
    by_speaker: bool


class Assertions:
    """The assertions of a transcript, found by their words."""

    def __init__(self, moments: Iterable[Moment]) -> None:
        self._found = [made for moment in moments for made in _of(moment)]
        self._where: dict[str, list[int]] = {}
        for at, made in enumerate(self._found):
            for word in made.statement.stated:
                self._where.setdefault(word, []).append(at)

    def state(self, claim: str) -> bool:
        """Whether an assertion states the claim: same subject, then relation and object in the same words and order.

        Args:
            claim: one or more sentences; it is stated when each of them is.
        """
        sentences = [sentence for sentence in _SENTENCES.split(claim) if sentence.strip()]
        return bool(sentences) and all(map(self._states, sentences))

    def _states(self, sentence: str) -> bool:
        wanted = read_statement(sentence)
        if len(wanted.roots) + bool(wanted.figures) <= _LEAST - 1 or "?" in sentence:
            return False
        places = min((self._where.get(word, []) for word in wanted.roots[1:]), key=len, default=[])
        return any(_states(self._found[at], wanted) for at in places[:_MAX_CANDIDATES])


def _of(moment: Moment) -> Iterator[Assertion]:
    labelled = {root(word) for word in tokens(moment.speaker or "")}
    speaker = frozenset(labelled | ({moment.role} if moment.role else set()))
    for sentence in _SENTENCES.split(moment.text):
        if "?" in sentence or not sentence.strip() or len(sentence) > _MAX_CLAUSE:
            continue
        # What turns one clause round may reach into the next (*if …, …*).
        if not (TURNS | _ATTITUDES).isdisjoint(read_statement(sentence).stated) and _CLAUSES.search(sentence):
            continue
        for clause in _CLAUSES.split(sentence):
            words = tokens(clause)
            by_speaker = bool(words) and words[0] in _FIRST_PERSON
            at = 1 if by_speaker else 0
            while at < len(words) and words[at] in (_AUXILIARIES if by_speaker else _DETERMINERS):
                at += 1
            yield Assertion(_read(clause, at), speaker, by_speaker)


def _read(clause: str, skipped: int) -> Statement:
    """The clause as a statement, without this many first words, which are not roots."""
    statement = read_statement(clause)
    light = len(read_statement(" ".join(tokens(clause)[:skipped])).roots)
    return Statement(statement.roots[light:], statement.figures) if light else statement


def _states(made: Assertion, wanted: Statement) -> bool:
    stated = made.statement
    if not (TURNS | _ATTITUDES).isdisjoint(stated.stated - wanted.stated):
        return False
    if not all(any(figure.agrees(other) for other in stated.figures) for figure in wanted.figures):
        return False
    subject, rest = wanted.roots[0], wanted.roots[1:]
    if made.by_speaker:
        enough = len(rest) + bool(wanted.figures) >= _LEAST
        return subject in made.speaker and enough and stated.roots[: len(rest)] == rest
    enough = len(wanted.roots) + bool(wanted.figures) > _LEAST
    return enough and subject not in {AGENT, CUSTOMER} and stated.roots[: len(wanted.roots)] == wanted.roots
