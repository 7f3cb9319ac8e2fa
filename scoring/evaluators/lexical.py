"""Lexical evaluator: a question in, an answer by quotes, times, numbers, names and shared words out, in any script.

``answer`` estimates, for a monitor without a judge. ``prove`` answers only what words prove, and leaves the rest to the
judge that is configured: a quote at its time, a number or a name that contradicts.

They answer the two questions about a reason of a scorecard, those about a summary (``lexical_text``), the one about a
fact of a translation (``lexical_translation``), and some of the benchmarks' (``lexical_benchmarks``); everything else
has no lexical answer.

*Cites the transcript* when a claim of the reason quotes words, gives a time stamp, or describes an action whose words
stand close together in the transcript. It does not when it claims nothing at all: praise ("Agent was polite"), a blank.
A description in words that stand nowhere may be a paraphrase, and is left open.

*Borne out* when each claim is a quote that stands there (with the speaker and at the time that the reason names), words
that stand at the time it names, or words around a figure that stands there. It is not when a quote, a time, a number, a
date or a name stands nowhere, when a quote that is denied stands there, or when nothing is claimed. Anything else is
left open: docs/lexical.md has how often each answer is right.

All reasons of a case together may cost a bounded amount of work; beyond it there is no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.claims import Claim, claims
from sidejudge.scoring.lexical.lexicon import AGENT_WORDS, CUSTOMER_WORDS, REPORTING, STOPWORDS
from sidejudge.scoring.lexical.text import tokens
from sidejudge.scoring.lexical.transcript_index import MAX_TRANSCRIPT, TranscriptIndex
from sidejudge.scoring.questions.kinds import KeepsFact
from sidejudge.scoring.questions.question import Answer, BorneOut, CitesTranscript, NoAnswer, Question, Reply
from sidejudge.scoring.result.reason import Reason
from sidejudge.scoring.result.result import Method

from . import lexical_benchmarks, lexical_text
from .embedding import EMBEDDING_ONLY
from .lexical_translation import keeps_fact


def answer(case: Case, question: Question) -> Reply:
    """The lexical estimate for a question about a case, or none."""
    if isinstance(question, KeepsFact):
        return keeps_fact(question)
    if isinstance(question, lexical_text.QUESTIONS):
        return lexical_text.answer(case, question)
    if isinstance(question, lexical_benchmarks.QUESTIONS):
        return lexical_benchmarks.answer(case, question)
    if not isinstance(question, CitesTranscript | BorneOut):
        return _EMBEDDINGS if isinstance(question, EMBEDDING_ONLY) else _JUDGE
    read = _read(case, question.reason)
    return read if isinstance(read, NoAnswer) else _estimated(question, *read)


def prove(case: Case, question: Question) -> Reply:
    """The answer to a question where words prove it; no word list decides. Anything else is left to a judge."""
    match question:
        case CitesTranscript(reason) | BorneOut(reason):
            read = _read(case, reason)
            return read if isinstance(read, NoAnswer) else _proven(question, *read)
        case _ if isinstance(question, lexical_text.QUESTIONS):
            return lexical_text.answer(case, question, proven=True)
        case _ if isinstance(question, lexical_benchmarks.QUESTIONS):
            return lexical_benchmarks.answer(case, question, proven=True)
        case _:
            return answer(case, question)


def _read(case: Case, reason: str) -> tuple[tuple[Claim, ...], TranscriptIndex] | NoAnswer:
    """The claims of a reason and the transcript that they are looked up in."""
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
        return _answer(value=False, why=Reason("the reason is blank"))
    exact = [claim for claim in found if not claim.negated and index.quotes_at(claim)]
    if isinstance(question, CitesTranscript):
        return _answer(value=True, why=_what(exact[0], index)) if exact else _NOT_PROVEN
    for claim in found:
        numbers = tuple(each for each in claim.numbers if each.currency is not None or len(each.text) > 1)
        stated = replace(lexical_text.without_doubtful_names(claim, question.reason), numbers=numbers)
        fault = None if claim.negated or index.is_foreign_to(claim) else index.fault_of_facts(stated)
        if fault is not None:
            return _answer(value=False, why=fault)
    if exact and len(exact) == len(found) and not _more_than_quotes(question.reason, exact):
        return _answer(value=True, why=_what(exact[0], index))
    return _NOT_PROVEN


def _estimated(question: CitesTranscript | BorneOut, found: tuple[Claim, ...], index: TranscriptIndex) -> Reply:
    """What the claims of a reason amount to: *yes* or *no* where that is nearly certain, else no answer."""
    if not found:
        return _answer(value=False, why=Reason("points at nothing in the transcript"))
    reporting = [claim for claim in found if _cites(claim, index)]
    if not reporting and any(index.is_foreign_to(claim) for claim in found):
        return NoAnswer(Reason("reason and transcript are written in different scripts"))
    if isinstance(question, CitesTranscript):
        return _answer(value=True, why=_what(reporting[0], index)) if reporting else _NOT_PROVEN
    for claim in found:
        fault = _fault(claim, question.reason, index)
        if fault is not None:
            return _answer(value=False, why=fault)
    if all(_stands(claim, index) for claim in found):
        return _answer(value=True, why=_what(found[0], index))
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
_TOO_MUCH = NoAnswer(
    Reason("the reasons of this case cost more lexical work than is done for one case: it needs a judge")
)


def _answer(*, value: bool, why: str) -> Answer:
    return Answer(value=value, method=Method.LEXICAL, reason=why)


def _cites(claim: Claim, index: TranscriptIndex) -> bool:
    if claim.anchored:
        return True
    if claim.negated:
        return index.talks_of(claim) and not index.is_foreign_to(claim)
    return index.match(claim).cites


def _fault(claim: Claim, reason: str, index: TranscriptIndex) -> str | None:
    """What contradicts a claim: a quote, a time, a figure or a name; None where nothing does."""
    if claim.negated:
        denied = next((quote for quote in claim.quotes if index.stands(quote)), None)
        return None if denied is None else f"{denied[:60]!r} does stand in the transcript"
    known = replace(claim, stamps=()) if claim.stamps and not index.has_times else claim
    if claim.dates and not index.gives_dates():
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
