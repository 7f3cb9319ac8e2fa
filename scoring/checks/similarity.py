"""Checks against another text: edit distance, n-grams, word overlap, embeddings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sidejudge.scoring.lexical.text import is_unspaced, normalise, same, tokens
from sidejudge.scoring.questions.kinds import SentenceSimilarity
from sidejudge.scoring.questions.question import Answer, Steps
from sidejudge.scoring.result.reason import Reason, ReasonPart, decided_number
from sidejudge.scoring.result.result import Failed, Method, Scored, Unavailable
from sidejudge.scoring.trace.span import Json

from .check import EXPECTED, Check, CheckError, Finding, Subject, keys, library, number, text, whole

MAX_COMPARED: Final = 20_000
"""Most characters of a compared text, because some measures take quadratic time."""
TOO_LONG: Final = Unavailable(Reason("a text is longer than {most} characters", most=MAX_COMPARED))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The text to compare with (None: the case's expected outcome), and the measure (None: a cosine).

    ``least`` is the cosine from which the check holds; None: the cosine itself is the value.
    """

    wanted: str | None
    measure: Callable[[str, str], Finding] | None
    least: float | None = None


def _reader(measure: Callable[[str, str], float]) -> Callable[[Json], Comparison]:
    """The reader of an argument (a text, or ``{to, threshold}``) as a comparison by this measure."""
    return lambda value: _read(_given(value), measure)


def _given(value: Json, *more: str) -> dict[str, Json]:
    return keys(None if value is True else value, ("to", "threshold", *more), short="to")


def _read(given: dict[str, Json], measure: Callable[[str, str], float]) -> Comparison:
    threshold = given.get("threshold")
    least = None if threshold is None else number(threshold, "threshold", most=1.0)
    return Comparison(_wanted(given.get("to")), _bounded(measure, least))


def _wanted(to: Json) -> str | None:
    return None if to is None or to in (EXPECTED, "expected") else text(to, "to")


def _bounded(measure: Callable[[str, str], float], least: float | None) -> Callable[[str, str], Finding]:
    def compare(found: str, wanted: str) -> Finding:
        if len(found) > MAX_COMPARED or len(wanted) > MAX_COMPARED:
            return TOO_LONG
        value = min(1.0, max(0.0, round(measure(found, wanted), 12)))
        if least is None:
            return value
        score, shown = _reaching(value, least)
        reason = Reason("{value}, at least {least:g} is asked for", value=shown, least=least)
        return Scored(value=score, method=Method.EXACT, reason=reason)

    return compare


def _reaching(value: float, least: float) -> tuple[float, ReasonPart]:
    """1 from a bound on, compared after rounding to 9 decimals (rubrics §1.3), else 0; and the value as it is shown."""

    def reaches(each: float) -> bool:
        return round(each, 9) >= round(least, 9)

    return float(reaches(value)), decided_number(value, reaches, 3)


def _parted(text: str) -> str:
    """The text with each character of a script without spaces as a word of its own, as sacreBLEU's ``zh`` has them.

    A sentence of Chinese was one word else, and shared nothing with any other.

    >>> _parted("A17 好的")
    'A17  好  的 '
    """
    return text if text.isascii() else "".join(f" {each} " if is_unspaced(each) else each for each in text)


def rouge_n(n: int, found: str, wanted: str) -> float:
    """ROUGE-N, F1: the shared n-grams of words over the n-grams of either text (Lin 2004).

    >>> round(rouge_n(1, "the cat sat", "the cat lay down"), 3)
    0.571
    """
    left, right = normalise(found), normalise(wanted)
    return _f1(_ngrams(_parted(left).split(), n), _ngrams(_parted(right).split(), n), alike=left == right)


def _f1(left: Counter[tuple[str, ...]], right: Counter[tuple[str, ...]], *, alike: bool) -> float:
    """The F1; of two texts too short for any, 1 where they are ``alike``, else 0."""
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else float(alike)


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[at:] for at in range(n)), strict=False))


def f_score(found: str, wanted: str) -> float:
    """F1 of the words that two texts share (SQuAD's answer F1).

    >>> f_score("in Paris, France", "Paris")
    0.5
    """
    left, right = (_ngrams(tokens(_parted(normalise(each))), 1) for each in (found, wanted))
    return _f1(left, right, alike=same(found, wanted))


def _rouge(value: Json) -> Comparison:
    given = _given(value, "n")
    n = whole(given.get("n", 1), "n", least=1)
    if n > 9:
        raise CheckError("must be at most 9", "n")
    return _read(given, partial(rouge_n, n))


def _levenshtein(value: Json) -> Comparison:
    distance = library("rapidfuzz.distance", "checks", "levenshtein").Levenshtein
    given = _given(value, "at_most")
    if given.get("at_most") is not None:
        most = whole(given["at_most"], "at_most")
        if given.get("threshold") is not None:
            raise CheckError("excludes threshold: leave one of them out", "at_most")

        def within_edits(found: str, wanted: str) -> Finding:
            if len(found) > MAX_COMPARED or len(wanted) > MAX_COMPARED:
                return TOO_LONG
            return bool(distance.distance(found, wanted, score_cutoff=most) <= most)

        return Comparison(_wanted(given.get("to")), within_edits)
    return _read(given, lambda found, wanted: float(distance.normalized_similarity(found, wanted)))


def _bleu(value: Json) -> Comparison:
    bleu = library("sacrebleu.metrics", "checks", "bleu").BLEU(effective_order=True)
    return _reader(lambda *both: float(bleu.sentence_score(_parted(both[0]), [_parted(both[1])]).score) / 100)(value)


def _chrf(value: Json) -> Comparison:
    chrf = library("sacrebleu.metrics", "checks", "chrf").CHRF()
    return _reader(lambda found, wanted: float(chrf.sentence_score(found, [wanted]).score) / 100)(value)


def _similar(value: Json) -> Comparison:
    given = _given(value)
    least = number(given["threshold"], "threshold", most=1.0) if given.get("threshold") is not None else None
    return Comparison(_wanted(given.get("to")), None, least)


def ask_similar(found: Sequence[str], wanted: str, least: float | None) -> Steps:
    """The greatest cosine of several texts with one, in [0, 1], as a request for embeddings."""
    replies = yield (SentenceSimilarity(tuple((each, wanted) for each in found)),)
    (reply,) = replies
    if not isinstance(reply, Answer):
        return Failed(reply.reason) if reply.failed else Unavailable(reply.reason)
    values = reply.value if isinstance(reply.value, tuple | list) else ()
    numbers = [float(each) for each in values if isinstance(each, int | float) and math.isfinite(each)]
    if not numbers:
        return Failed(Reason("no cosine was returned"))
    value = min(1.0, max(0.0, *numbers))
    if least is None:
        return Scored(value=value, method=reply.method)
    score, shown = _reaching(value, least)
    reason = Reason("cosine {value}, at least {least:g} is asked for", value=shown, least=least)
    return Scored(value=score, method=reply.method, reason=reason)


_COMPARED: Final = "a text, {to, threshold}, or true for the expected outcome"
_UNSPACED: Final = "each character of Chinese, Japanese, Thai and the like is a word"
_UNDEFINED: Final = f"its target or the expected outcome is not known, or one is longer than {MAX_COMPARED} characters"


_check = partial(Check, subject=Subject.PAIR, graded=True, method=Method.LEXICAL, undefined=_UNDEFINED, extra="checks")
CHECKS: Final = (
    _check("levenshtein", "Edit distance", "1 - edits / length of the longer text; with `at_most` at most so many of "
           "them", "a text, or {to, threshold | at_most}", _levenshtein, source="Levenshtein 1966; rapidfuzz"),
    _check("rouge-n", "ROUGE-N", f"F1 of shared n-grams of words (n: 1 unless given); {_UNSPACED}",
           "a text, or {to, n, threshold}", _rouge, source="Lin 2004", extra=None),
    _check("f-score", "Word F1", f"F1 of shared words; {_UNSPACED}", _COMPARED, _reader(f_score),
           source="Rajpurkar et al. 2016 (SQuAD)", extra=None),
    _check("bleu", "BLEU", f"BLEU of the sentence with effective order, in [0, 1]; {_UNSPACED}", _COMPARED, _bleu,
           source="Papineni et al. 2002; sacreBLEU (Post 2018)"),
    _check("chrf", "chrF", "chrF2 of the sentence, in [0, 1]", _COMPARED, _chrf,
           source="Popović 2015; sacreBLEU (Post 2018)"),
    _check("similar", "Likeness in meaning", "the cosine of the two texts' embeddings, in [0, 1]", _COMPARED, _similar,
           method=Method.EMBEDDING, source="promptfoo's assertion of this name", extra=None),
)  # fmt: skip
"""The checks against another text."""
