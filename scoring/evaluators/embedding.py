"""Embedding answers: the similarity of two texts in meaning, as the cosine of their vectors.

*Similarity* is the cosine itself. *The same entity*, *highlight* or *fact* means a cosine of at least 0.80 (rubrics
§4). A cosine is blind to figures and denials ("$49" and "$94", "refunded" and "not refunded" lie close together). So
similar statements are the same only where figures agree and no denial differs; statements with different figures are
not the same; anything else is left open, for a judge.

The runtime provides the vectors. A text is read up to ``MAX_TEXT`` characters; a model may read fewer (LaBSE: 256
tokens).

Vectors are plain numbers of length one, compared by their cosine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Final, TypeAlias

from sidejudge.scoring.lexical.amount import decided
from sidejudge.scoring.lexical.statement import MAX_STATEMENT, TURNS, Statement, contradicts, read_statement
from sidejudge.scoring.metrics.pairing import maximum_matching
from sidejudge.scoring.questions.kinds import SameEntity, SameFact, SameHighlight, SentenceSimilarity
from sidejudge.scoring.questions.question import Answer, NoAnswer, Question, Reply
from sidejudge.scoring.result.reason import Reason, quoted
from sidejudge.scoring.result.result import Method

Vector: TypeAlias = Sequence[float]
"""An embedding; any sequence of numbers that can be read more than once."""


def unit(vector: Vector) -> tuple[float, ...]:
    """The vector with the same direction and length 1; ``ValueError`` for a vector without direction.

    >>> unit((3.0, 4.0))
    (0.6, 0.8)
    """
    largest = max(map(abs, vector), default=0.0)
    if not all(map(math.isfinite, vector)) or largest == 0:
        raise ValueError("a vector that is zero, empty or not finite")
    scaled = [value / largest for value in vector]  # else the squares of tiny or huge numbers would be lost
    length = math.sqrt(sum(map(mul, scaled, scaled)))
    return tuple(value / length for value in scaled)


def cosine(left: Vector, right: Vector) -> float:
    """The cosine of the angle between two vectors of length 1, in [-1, 1].

    >>> cosine((0.6, 0.8), (0.8, 0.6))
    0.96
    """
    if len(left) != len(right):
        raise ValueError(f"vectors of {len(left)} and of {len(right)} dimensions")
    return min(1.0, max(-1.0, float(sum(map(mul, left, right)))))


SAME_ENTITY: Final = 0.80
"""Cosine from which two names mean the same thing (rubrics §4)."""
SAME_STATEMENT: Final = 0.80
"""Cosine from which two highlights or facts may mean the same; that of entities, because the seeds name no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CosineThresholds:
    """Least cosines at which two names, or two statements, count as the same. They depend on the model."""

    entity: float = SAME_ENTITY
    statement: float = SAME_STATEMENT


OF_THE_SEED: Final = CosineThresholds()
MAX_TEXT: Final = 16_000
"""Most characters of a text that a model receives."""
MAX_TEXTS: Final = 2_000
"""Most texts of one question: some minutes of a large model's time on a CPU."""
MAX_COMPARISONS: Final = 10_000
"""Most pairs of names that are compared: a hundred on either side."""

Vectors: TypeAlias = Mapping[str, Vector]
"""Vectors of length 1 by text, as ``texts`` gives it."""

QUESTIONS: Final = (SentenceSimilarity, SameEntity, SameHighlight, SameFact)
EMBEDDING_ONLY: Final = (SentenceSimilarity, SameEntity)
"""Questions that the cosine of two embeddings answers and no judge can."""

_UNUSABLE = NoAnswer(Reason("the embedding model gives no usable vector for one of the texts"), failed=True)


def texts(question: Question) -> tuple[str, ...] | NoAnswer:
    """The texts whose vectors an answer needs, without repeats; none for a question that embeddings do not answer."""
    match question:
        case SentenceSimilarity(pairs):
            wanted = [text for pair in pairs for text in pair]
        case SameEntity(names, found):
            if len(names) * len(found) > MAX_COMPARISONS:
                return NoAnswer(Reason("more than {most} pairs of names to compare", most=MAX_COMPARISONS))
            wanted = [*names, *found] if names and found else []
        case SameHighlight(expected, found_one) | SameFact(expected, found_one):
            if max(len(expected), len(found_one)) > MAX_STATEMENT:
                return NoAnswer(Reason("a statement of more than {most} characters", most=MAX_STATEMENT))
            wanted = [expected, found_one]
        case _:
            wanted = []
    if len(wanted) > MAX_TEXTS:
        return NoAnswer(Reason("more than {most} texts to compare", most=MAX_TEXTS))
    if not all(text.strip() for text in wanted):
        return NoAnswer(Reason("a blank text has no meaning to compare"))
    return tuple(dict.fromkeys(map(_given, wanted)))


def answer(question: Question, vectors: Vectors, at: CosineThresholds = OF_THE_SEED) -> Reply:
    """The answer by the vectors of ``texts(question)``; it fails for a text without one, and for two of two models."""
    if not isinstance(question, QUESTIONS):
        return NoAnswer(Reason("this question has no answer by embeddings"))
    needed = texts(question)
    if isinstance(needed, NoAnswer):
        return needed
    if any(text not in vectors for text in needed):
        return _UNUSABLE
    try:
        return _compared(question, vectors, at)
    except ValueError as error:
        return NoAnswer(Reason("the vectors cannot be compared: {error}", error=quoted(str(error))), failed=True)


def _compared(
    question: SentenceSimilarity | SameEntity | SameHighlight | SameFact, vectors: Vectors, at: CosineThresholds
) -> Reply:
    """The answer; ``ValueError`` where vectors that are compared differ in length."""
    match question:
        case SentenceSimilarity(pairs):
            cosines = tuple(_likeness(one, other, vectors) for one, other in pairs)
            return _answered(cosines, f"cosine {min(cosines):.3f} and up" if cosines else "nothing to compare")
        case SameEntity(names, found):
            return _answered(_matches(names, found, vectors, at.entity), f"cosine >= {_mark(at.entity)}, one to one")
        case SameHighlight(expected, found_one):
            likeness = _likeness(expected, found_one, vectors)
            return states(expected, found_one, likeness, at.statement, more_is_less=False)
        case SameFact(expected, found_one):
            likeness = _likeness(expected, found_one, vectors)
            return states(expected, found_one, likeness, at.statement, more_is_less=True)


def _mark(least: float) -> str:
    """A threshold with two decimals, or with all of its own if it has more."""
    text = f"{least:.2f}"
    return text if float(text) == least else f"{least:.9g}"


def _given(text: str) -> str:
    # JSON may have carried half of a surrogate pair, which no tokenizer takes.
    return text[:MAX_TEXT].encode("utf-8", "replace").decode()


def _likeness(one: str, other: str, vectors: Vectors) -> float:
    return cosine(vectors[_given(one)], vectors[_given(other)])


def _matches(names: Sequence[str], found: Sequence[str], vectors: Vectors, least: float) -> tuple[int | None, ...]:
    """A largest one-to-one matching that tries each name's nearest partners first."""
    edges: list[list[int]] = []
    for name in names:
        near = {at: _likeness(name, other, vectors) for at, other in enumerate(found)}
        edges.append(sorted((at for at in near if near[at] >= least), key=lambda at: (-near[at], at)))
    matched = maximum_matching(edges)
    return tuple(matched.get(at) for at in range(len(names)))


def states(expected: str, found: str, likeness: float, least: float, *, more_is_less: bool) -> Reply:
    """Whether ``found`` states the expected, by a cosine of at least ``least`` and by figures and denials.

    ``more_is_less``: figures beyond the expected ones make it a different statement.
    """
    if likeness < least:
        return _answered(False, f"cosine {decided(likeness, lambda each: each < least, 3)} < {_mark(least)}")
    wanted, given = read_statement(expected), read_statement(found)
    if contradicts(wanted, given) or contradicts(given, wanted) or _other_figures(wanted, given):
        return _answered(False, f"cosine {likeness:.3f}, but other figures or the opposite")
    if not TURNS.isdisjoint(wanted.stated ^ given.stated):
        return NoAnswer(Reason("alike, but one of them denies or qualifies: embeddings cannot tell, it needs a judge"))
    if not _has_figures_of(given, wanted) or (more_is_less and not _has_figures_of(wanted, given)):
        return NoAnswer(Reason("alike, but one of them gives more figures: embeddings cannot tell, it needs a judge"))
    return _answered(True, f"cosine {likeness:.3f}")


def _other_figures(wanted: Statement, given: Statement) -> bool:
    """Whether both give figures, and each has some that the other lacks: no wording of a number explains that."""
    return not _has_figures_of(given, wanted) and not _has_figures_of(wanted, given)


def _has_figures_of(one: Statement, other: Statement) -> bool:
    return all(any(figure.agrees(mine) for mine in one.figures) for figure in other.figures)


def _answered(value: object, why: str) -> Answer:
    return Answer(value=value, method=Method.EMBEDDING, reason=why)
