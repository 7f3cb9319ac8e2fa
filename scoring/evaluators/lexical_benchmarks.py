"""Lexical answers to the benchmarks' questions: same facts by words and figures, pieces of context by shared words."""

from __future__ import annotations

from collections.abc import Iterable

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.statement import read_statement
from sidejudge.scoring.lexical.transcript_index import MAX_TRANSCRIPT
from sidejudge.scoring.metrics.context_use import Pieces, TooMuchError
from sidejudge.scoring.metrics.stated import ECHOES, leaves, sentences
from sidejudge.scoring.questions.kinds import PiecesNeeded, PiecesUsed, SameFact, SameHighlight
from sidejudge.scoring.questions.question import Answer, NoAnswer, Question, Reply
from sidejudge.scoring.result.reason import Reason, own
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.trace.span import Json

from . import lexical_text

QUESTIONS = (SameFact, PiecesUsed, PiecesNeeded)


def answer(case: Case, question: Question, *, proven: bool = False) -> Reply:
    """The lexical answer to a question of the benchmarks, or none; ``proven`` is as in ``lexical_text.answer``."""
    match question:
        case SameFact(expected, found):
            return _same_fact(case, expected, found, proven=proven)
        case PiecesUsed() | PiecesNeeded() if proven:
            return NoAnswer(Reason("shared words do not prove it: it needs a judge"))
        case PiecesUsed(pieces):
            return _drawn_on(pieces, case.output_content)
        case PiecesNeeded(pieces):
            return _drawn_on(pieces, case.expected_content)
        case _:
            return NoAnswer(Reason("words alone cannot tell: it needs a judge"))


def _same_fact(case: Case, expected: str, found: str, *, proven: bool) -> Reply:
    """As a highlight is compared; but one that gives figures beyond the expected ones is not the same fact."""
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
