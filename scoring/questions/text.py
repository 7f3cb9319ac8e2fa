"""Questions of the text rubric: what a summary states, compared with the reference and the transcript."""

from __future__ import annotations

from dataclasses import dataclass

from .question import Question


@dataclass(frozen=True, slots=True)
class SameIntent(Question):
    """Does ``found`` state the purpose of the call that ``expected`` states?

    Answered by 1.0 (the same), 0.5 (the right domain, an incomplete intent) or 0.0 (another intent).
    """

    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class SameHighlight(Question):
    """Does the highlight ``found`` state what ``expected`` states (and perhaps more)? Answered by a bool."""

    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class CorrectHighlight(Question):
    """Is this highlight correct? Answered by a bool.

    It is when nothing in it contradicts the case's reference, and every number, amount, date and name in it stands in
    the reference or the transcript.
    """

    highlight: str


@dataclass(frozen=True, slots=True)
class SummaryClaims(Question):
    """Which claims do these facts of a summary make? Answered by a tuple of texts, at least one.

    Nobody able to answer: each fact counts as one claim, as it stands.
    """

    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Supported(Question):
    """Does the transcript or the reference support this claim? Answered by a bool.

    ``about`` names the field of a bare value (``customer_name``), and is empty where the claim is a sentence.
    """

    claim: str
    about: str = ""
