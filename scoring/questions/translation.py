"""Questions about a translation: how close in meaning, how fluent, which facts it keeps (seed 000, Task 4)."""

from __future__ import annotations

from dataclasses import dataclass

from .question import Question


@dataclass(frozen=True, slots=True)
class SentenceSimilarity(Question):
    """How close in meaning are the two texts of each pair?

    For a translation they are the model's sentence and the reference's, in one target language.
    Answered by one number a pair, in order: the cosine similarity of their multilingual embeddings, in [-1, 1].
    """

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class HowFluent(Question):
    """Is this translation grammatically correct and natural in its target language? Only a judge answers this.

    ``language`` is the target language where the case names one (``hi``); None: that of the case's reference.
    Answered by a number in [0, 1], by the levels of seed 000, Task 4, Metric 3: 1.0 reads like a native translation,
    0.75 minor issues, 0.50 noticeable errors, 0.25 meaning obscured, 0.0 incomprehensible.
    """

    text: str
    language: str | None = None


@dataclass(frozen=True, slots=True)
class KeepsFact(Question):
    """Does this translation state this fact, unchanged (an outcome changed or reversed is not kept)?

    The fact may be written in the source or in the target language. Answered by a bool.
    """

    fact: str
    translation: str


@dataclass(frozen=True, slots=True)
class OutcomeDrift(Question):
    """Which outcomes of the call do the reference's sentences state, and which of them do the model's keep?

    Outcomes are what was resolved, escalated, refused, agreed …; numbers, dates and codes are not included.
    ``pairs`` are (reference's sentence, model's sentence), the latter empty where there is none. Answered by
    ``{"outcomes": [{"outcome": "escalated to supervisor", "kept": false}, …], "added": ["…", …]}``: each outcome of
    the reference once; ``added`` are outcomes that the model states in the place of none of the reference's.
    """

    pairs: tuple[tuple[str, str], ...]
