"""Lexical evaluator: answers questions by quotes, times, numbers, names and words, in any script.

``answer`` estimates, for a monitor without a judge. ``prove`` answers only what words prove (a quote at its time, a
contradicting number or name), and leaves the rest to the configured judge.

They answer the two questions about a reason of a scorecard, those about a summary (``lexical_text``), the one about a
fact of a translation, and some of the benchmarks'; everything else has no lexical answer.

A reason *cites the transcript* when a claim of it quotes words, gives a time stamp, or describes an action whose words
stand close together in the transcript. It does not when it claims nothing at all: praise ("Agent was polite"), a blank.
A description in words that the transcript lacks may be a paraphrase, and is left open.

It is *borne out* when the transcript holds each claim: a quote (with the speaker and at the time that the reason
names), words at the named time, or words around a figure. It is not when a quote, time, number, date or name is absent,
when a quote that is denied is present, or when nothing is claimed. Anything else is left open; docs/lexical.md states
how often each answer is right.

The work for all reasons of a case is bounded; beyond the bound there is no answer.

A fact of a translation is kept where the translation holds all of its figures: numbers, dates, times, codes, in any
script. It is lost where another figure of the same kind replaces one. An absent figure may be written in words or in
another unit, and is left open, as is anything that a sign, a half of the day or a version number may change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.claims import Claim, claims
from sidejudge.scoring.lexical.critical_facts import CriticalFact, CriticalFacts, grouped_alike
from sidejudge.scoring.lexical.lexicon import AGENT_WORDS, CUSTOMER_WORDS, REPORTING, STOPWORDS
from sidejudge.scoring.lexical.mention import Mentions
from sidejudge.scoring.lexical.statement import read_statement
from sidejudge.scoring.lexical.text import tokens
from sidejudge.scoring.lexical.transcript_index import MAX_TRANSCRIPT, TranscriptIndex
from sidejudge.scoring.metrics.context_use import Pieces, TooMuchError
from sidejudge.scoring.metrics.stated import ECHOES, leaves, sentences
from sidejudge.scoring.questions.kinds import (
    BorneOut,
    CitesTranscript,
    KeepsFact,
    PiecesNeeded,
    PiecesUsed,
    SameFact,
    SameHighlight,
)
from sidejudge.scoring.questions.question import Answer, NoAnswer, Question, Reply
from sidejudge.scoring.result.reason import Reason, own, quoted
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.trace.span import Json

from . import lexical_text
from .embedding import EMBEDDING_ONLY


def answer(case: Case, question: Question) -> Reply:
    """The lexical estimate for a question about a case, or none."""
    return _reply(case, question, proven=False)


def prove(case: Case, question: Question) -> Reply:
    """The answer to a question where words prove it; no word list decides. Anything else is left to a judge."""
    return _reply(case, question, proven=True)


def _reply(case: Case, question: Question, *, proven: bool) -> Reply:
    match question:
        case CitesTranscript(reason) | BorneOut(reason):
            read = _read(case, reason)
            if isinstance(read, NoAnswer):
                return read
            return _proven(question, *read) if proven else _estimated(question, *read)
        case KeepsFact():
            return keeps_fact(question)
        case SameFact(expected, found):
            return _same_fact(case, expected, found, proven=proven)
        case PiecesUsed() | PiecesNeeded() if proven:
            return _SHARED_WORDS
        case PiecesUsed(pieces):
            return _drawn_on(pieces, case.output_content)
        case PiecesNeeded(pieces):
            return _drawn_on(pieces, case.expected_content)
        case _ if isinstance(question, lexical_text.QUESTIONS):
            return lexical_text.answer(case, question, proven=proven)
        case _:
            return _EMBEDDINGS if isinstance(question, EMBEDDING_ONLY) else _JUDGE


def _read(case: Case, reason: str) -> tuple[tuple[Claim, ...], TranscriptIndex] | NoAnswer:
    """The claims of a reason, and the transcript to look them up in."""
    index = case.transcript_index
    if index is None:
        known = case.transcript is not None
        return NoAnswer(
            Reason("the transcript is longer than {most} characters", most=MAX_TRANSCRIPT)
            if known
            else Reason("no transcript")
        )
    if not index.can_read(reason):
        return _TOO_MUCH
    found = claims(reason)
    return (found, index) if index.can_check(reason, found) else _TOO_MUCH


def _proven(question: CitesTranscript | BorneOut, found: tuple[Claim, ...], index: TranscriptIndex) -> Reply:
    if not found and not question.reason.strip():
        return lexical_text.answered(value=False, why=Reason("the reason is blank"))
    exact = [claim for claim in found if not claim.negated and index.quotes_at(claim)]
    if isinstance(question, CitesTranscript):
        return lexical_text.answered(value=True, why=_what(exact[0], index)) if exact else _NOT_PROVEN
    for claim in found:
        numbers = tuple(each for each in claim.numbers if each.currency is not None or len(each.text) > 1)
        stated = replace(lexical_text.without_doubtful_names(claim, question.reason), numbers=numbers)
        fault = None if claim.negated or index.is_foreign_to(claim) else index.fault_of_facts(stated)
        if fault is not None:
            return lexical_text.answered(value=False, why=fault)
    if exact and len(exact) == len(found) and not _more_than_quotes(question.reason, exact):
        return lexical_text.answered(value=True, why=_what(exact[0], index))
    return _NOT_PROVEN


def _estimated(question: CitesTranscript | BorneOut, found: tuple[Claim, ...], index: TranscriptIndex) -> Reply:
    """The answer that the claims of a reason give: *yes* or *no* where nearly certain, else none."""
    if not found:
        return lexical_text.answered(value=False, why=Reason("points at nothing in the transcript"))
    reporting = [claim for claim in found if _cites(claim, index)]
    if not reporting and any(index.is_foreign_to(claim) for claim in found):
        return NoAnswer(Reason("reason and transcript are written in different scripts"))
    if isinstance(question, CitesTranscript):
        return lexical_text.answered(value=True, why=_what(reporting[0], index)) if reporting else _NOT_PROVEN
    for claim in found:
        fault = _fault(claim, question.reason, index)
        if fault is not None:
            return lexical_text.answered(value=False, why=fault)
    if all(_stands(claim, index) for claim in found):
        return lexical_text.answered(value=True, why=_what(found[0], index))
    return _NOT_PROVEN


def _more_than_quotes(reason: str, exact: Sequence[Claim]) -> bool:
    """Whether a reason holds anything besides its quotes, their times and their speakers."""
    for claim in exact:
        for quote in claim.quotes:
            reason = reason.replace(quote, " ")
    words = [word for word in tokens(reason) if not word.isdigit()]
    return not all(word in _OF_A_QUOTE or any(word.startswith(stem) for stem in REPORTING) for word in words)


_OF_A_QUOTE = AGENT_WORDS | CUSTOMER_WORDS | STOPWORDS
_EMBEDDINGS = NoAnswer(Reason("this question has no lexical answer: it needs embeddings"))
_JUDGE = NoAnswer(Reason("this question has no lexical answer: it needs a judge"))
_NOT_PROVEN = NoAnswer(Reason("words alone do not prove it: it needs a judge"))
_SHARED_WORDS = NoAnswer(Reason("shared words do not prove it: it needs a judge"))
_TOO_MUCH = NoAnswer(
    Reason("the reasons of this case cost more lexical work than is done for one case: it needs a judge")
)


def _cites(claim: Claim, index: TranscriptIndex) -> bool:
    if claim.anchored:
        return True
    if claim.negated:
        return index.talks_of(claim) and not index.is_foreign_to(claim)
    return index.match(claim).cites


def _fault(claim: Claim, reason: str, index: TranscriptIndex) -> str | None:
    """What contradicts a claim: a quote, a time, a figure or a name; None where nothing does."""
    if claim.negated:
        denied = next((quote for quote in claim.quotes if index.has_quote(quote)), None)
        return None if denied is None else f"{denied[:60]!r} does stand in the transcript"
    known = replace(claim, stamps=()) if claim.stamps and not index.has_times else claim
    if claim.dates and not index.has_dates():
        known = replace(known, dates=())  # a date may be spoken in words
    named = lexical_text.without_doubtful_names(known, reason)
    return index.fault_of_anchors(known) or (None if index.is_foreign_to(claim) else index.fault_of_facts(named))


def _stands(claim: Claim, index: TranscriptIndex) -> bool:
    """Whether a claim without a fault is borne out: by its quote, or by its words at its time or beside its figure."""
    if claim.negated or (claim.stamps and not index.has_times):
        return False
    if claim.quotes:
        return True
    match = index.match(claim)
    if claim.stamps:
        return match.fits_moment and bool(claim.content or claim.acts)
    return bool(claim.numbers or claim.dates) and match.cites and match.fault is None


def _what(claim: Claim, index: TranscriptIndex) -> str:
    if claim.quotes:
        return f"quotes {claim.quotes[0][:60]!r}"
    if claim.stamps:
        return f"names the time {claim.stamps[0] // 60:02}:{claim.stamps[0] % 60:02}"
    if claim.negated:
        return "denies something that the transcript can tell of"
    return f"describes: {', '.join(index.match(claim).words[:6])}"


def _same_fact(case: Case, expected: str, found: str, *, proven: bool) -> Reply:
    """Compare as a highlight; but a fact with figures beyond the expected ones is not the same."""
    reply = lexical_text.answer(case, SameHighlight(expected, found), proven=proven)
    more = len(read_statement(found).figures) > len(read_statement(expected).figures)
    if isinstance(reply, Answer) and reply.value is True and more:
        return NoAnswer(Reason("it gives more figures than expected: whether it is the same fact needs a judge"))
    return reply


def _drawn_on(pieces: tuple[str, ...], stated: Json) -> Reply:
    if sum(map(len, pieces)) > MAX_TRANSCRIPT:
        return NoAnswer(Reason("the context is longer than {most} characters", most=MAX_TRANSCRIPT))
    try:
        found = Pieces(pieces).drawn_on(_statements(stated))
    except TooMuchError as error:
        return NoAnswer(Reason("{error}", error=own(str(error))))
    if found is None:
        return NoAnswer(Reason("words alone cannot tell where most of it comes from: it needs a judge"))
    marked = tuple(at in found for at in range(len(pieces)))
    return Answer(value=marked, method=Method.LEXICAL, reason=Reason("by shared words"))


def _statements(stated: Json) -> Iterable[str]:
    for _, leaf in leaves(stated, without=ECHOES):
        if isinstance(leaf, str):
            yield from sentences(leaf)


_HALF_OF_DAY: Final = re.compile(
    r"\b[ap]\.? ?m\b\.?|(?:noon|midnight|mittags?|nachmittags?|abends?|tarde|noche|soir)", re.IGNORECASE
)
_NEGATIVE: Final = re.compile(r"(?<![\w.,])[-−–]\d|\bminus\b|\bmoins\b|\bmenos\b", re.IGNORECASE)
_TRAILING_ZERO: Final = re.compile(r"\d[.,]\d*0(?!\d)")


def keeps_fact(question: KeepsFact) -> Reply:
    """Whether a fact is kept; one without any figure is kept when it stands there word for word."""
    fact, translation = grouped_alike(question.fact, question.translation)
    wanted = CriticalFacts(fact).facts
    if not wanted:
        if Mentions([translation]).has(fact):
            return lexical_text.answered(value=True, why=Reason("stands there word for word"))
        return NoAnswer(
            Reason("critical fact {fact} names no number, date or code: it needs a judge", fact=quoted(repr(fact[:60])))
        )
    stated = _stated(translation)
    lost = [each for each in wanted if not stated.state(each)]
    if not lost:
        return _OPEN if _may_differ(fact, translation) else Answer(value=True, method=Method.LEXICAL)
    others = [each for each in stated.facts if each not in wanted]
    replaced = [each.text for each in lost if any(_in_place_of(each, other) for other in others)]
    if not replaced or _marks(fact).half or _marks(translation).half:
        return _OPEN
    return Answer(
        value=False,
        method=Method.LEXICAL,
        reason=Reason("not there: {facts}", facts=quoted(", ".join(replaced[:5])[:200])),
    )


def _may_differ(fact: str, translation: str) -> bool:
    """Whether equal figures may mean something else: a sign, a half of the day, a version's last zero."""
    own, other = _marks(fact), _marks(translation)
    return own.half or other.half or own.negative != other.negative or own.trailing_zero != other.trailing_zero


class _Marks(NamedTuple):
    """What a text holds that may change the meaning of a figure."""

    half: bool
    negative: bool
    trailing_zero: bool


@lru_cache(maxsize=4)
def _marks(text: str) -> _Marks:
    # One question a fact is asked of the same translation.
    found = (pattern.search(text) is not None for pattern in (_HALF_OF_DAY, _NEGATIVE, _TRAILING_ZERO))
    return _Marks(*found)


def _in_place_of(lost: CriticalFact, other: CriticalFact) -> bool:
    """Whether a fact of the translation may replace a missing one: both are of one kind."""
    if lost.time:
        return bool(other.time)
    if lost.literal:
        return bool(other.literal) and lost.literal[-1:].isalpha() == other.literal[-1:].isalpha()
    if lost.date:
        return bool(other.date)
    measures = {quantity.measure for quantity in lost.quantities}
    return bool(other.quantities) and measures == {quantity.measure for quantity in other.quantities}


_OPEN: Final = NoAnswer(Reason("figures alone cannot tell: it needs a judge"))


@lru_cache(maxsize=4)
def _stated(translation: str) -> CriticalFacts:
    # One question a fact is asked of the same translation.
    return CriticalFacts(translation)
