"""Lexical answers: estimates by quotes, time stamps, numbers, names and word overlap. No model, no network, any script.

They answer the two questions about a reason of a scorecard, those about a summary (``lexical_text``), the one about a
fact of a translation (``lexical_translation``), and some of the benchmarks' (``lexical_benchmarks``); everything else
has no lexical answer.

*Cites the transcript* when a claim of the reason quotes words, gives a time stamp, or describes an action whose words
stand close together in the transcript; praise ("Agent was polite") does not. A claim that something was **not** done
cites the transcript when it denies a quote, names a time, or is for a third or more about what the transcript talks of
or about acts of speech that can be told by their phrases (greeting, apology, verification, a time promised …): a denial
of anything else is true of every call, and evidence of none.

*Borne out* when, besides, every quote stands in the transcript (with the speaker and at the time that the reason
names), every time stamp exists, every number, date and name stands there, no claim contradicts it, and the reason says
anything at all besides a time: a bare "00:05" points somewhere, and says nothing of it.

All reasons of a case together may cost a bounded amount of work; beyond it there is no answer.
"""

from __future__ import annotations

from scoring.case.case import Case
from scoring.lexical.claims import Claim, claims
from scoring.lexical.transcript_index import MAX_TRANSCRIPT, TranscriptIndex
from scoring.questions.question import Answer, BorneOut, CitesTranscript, NoAnswer, Question, Reply
from scoring.questions.translation import KeepsFact
from scoring.result.result import Method

from . import lexical_benchmarks, lexical_text
from .embedding import EMBEDDING_ONLY
from .lexical_translation import keeps_fact


def answer(case: Case, question: Question) -> Reply:
    """The lexical answer to a question about a case, or none."""
    if isinstance(question, KeepsFact):
        return keeps_fact(question)
    if isinstance(question, lexical_text.QUESTIONS):
        return lexical_text.answer(case, question)
    if isinstance(question, lexical_benchmarks.QUESTIONS):
        return lexical_benchmarks.answer(case, question)
    if not isinstance(question, CitesTranscript | BorneOut):
        who = "embeddings" if isinstance(question, EMBEDDING_ONLY) else "a judge"
        return NoAnswer(f"this question has no lexical answer: it needs {who}")
    witness = case.witness
    if witness is None:
        known = case.transcript is not None
        return NoAnswer(f"the transcript is longer than {MAX_TRANSCRIPT} characters" if known else "no transcript")
    if not witness.can_read(question.reason):
        return _TOO_MUCH
    found = claims(question.reason)
    if not witness.can_check(question.reason, found):
        return _TOO_MUCH
    return _told(question, found, witness)


def _told(question: CitesTranscript | BorneOut, found: tuple[Claim, ...], witness: TranscriptIndex) -> Reply:
    """What the claims of a reason amount to."""
    if not found:
        return _answer(value=False, why="points at nothing in the transcript")
    telling = [claim for claim in found if _cites(claim, witness)]
    if not telling:
        if any(witness.is_foreign_to(claim) for claim in found):
            return NoAnswer("reason and transcript are written in different scripts")
        return _answer(value=False, why="no quote, time stamp or described action of the transcript")
    if isinstance(question, CitesTranscript):
        return _answer(value=True, why=_what(telling[0], witness))
    if not any(claim.checkable for claim in found):
        return _answer(value=False, why="names a time and nothing that was said or done then")
    for claim in found:
        fault = _fault(claim, witness, tells=claim in telling)
        if fault is not None:
            return _answer(value=False, why=fault)
    return _answer(value=True, why=_what(telling[0], witness))


_TOO_MUCH = NoAnswer("the reasons of this case cost more lexical work than is done for one case: it needs a judge")


def _answer(*, value: bool, why: str) -> Answer:
    return Answer(value=value, method=Method.LEXICAL, reason=why)


def _cites(claim: Claim, witness: TranscriptIndex) -> bool:
    if claim.anchored:
        return True
    if claim.negated:
        return witness.talks_of(claim) and not witness.is_foreign_to(claim)
    return witness.match(claim).cites


def _fault(claim: Claim, witness: TranscriptIndex, *, tells: bool) -> str | None:
    """Why a claim is not borne out; None when nothing speaks against it."""
    if claim.negated:
        return witness.fault_of_denial(claim)
    fault = witness.fault_of_anchors(claim) or witness.fault_of_facts(claim)
    if fault is not None:
        return fault
    if claim.quotes:
        return None
    match = witness.match(claim)
    if claim.stamps:
        return None if match.fits_moment else "what it describes does not stand at that time"
    if tells:
        return match.fault
    return "describes what does not stand in the transcript" if match.made_up else None


def _what(claim: Claim, witness: TranscriptIndex) -> str:
    if claim.quotes:
        return f"quotes {claim.quotes[0][:60]!r}"
    if claim.stamps:
        return f"names the time {claim.stamps[0] // 60:02}:{claim.stamps[0] % 60:02}"
    if claim.negated:
        return "denies something that the transcript can tell of"
    return f"describes: {', '.join(witness.match(claim).words[:6])}"
