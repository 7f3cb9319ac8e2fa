"""Attempt: a finished request to a model, and who is notified: metrics count it, own traces and logs report it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.question import Question

from .errors import ProviderUsage

Flag: TypeAlias = Literal["contradiction", "disagreement"]
FLAGS: Final[tuple[Flag, ...]] = get_args(Flag)
BodyShape: TypeAlias = Literal["stream", "parts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's response. An empty text is the model's doing, not a fault of the provider.

    ``model`` is the provider's name for it; ``tool_call``: the text is the arguments of one; ``cut_off``: it ran into
    ``max_tokens``. ``finish_reason`` and ``response_id`` are the provider's, None where it gives none. ``tokens`` are
    the text's tokens with the logarithms of their probabilities, if it gives them. ``shapes``: the body was unusual.
    """

    text: str
    model: str
    usage: ProviderUsage
    duration_s: float
    cut_off: bool = False
    tool_call: bool = False
    finish_reason: str | None = None
    response_id: str | None = None
    tokens: tuple[tuple[str, float], ...] = ()
    shapes: tuple[BodyShape, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAttempt:
    """One request to a model, over. ``model`` is its configured name, ``usage`` the request's tokens and dollars.

    ``failure`` is a ``ProviderErrorKind``, ``parse_error`` when no answer in it was valid, or None; ``completion`` the
    model's response, None without one. ``shapes`` counts what was read of it though it was not in the form that was
    asked for (``scoring.judging.shapes.SHAPES``).
    """

    model: str
    duration_s: float
    usage: ProviderUsage
    failure: str | None = None
    completion: Completion | None = None
    shapes: Mapping[str, int] = field(default_factory=dict)


class JudgeObserver:
    """The events of judging. This class ignores all; a subclass overrides the methods that it needs.

    They are called in the event loop and must return at once.
    """

    def judging(self, case: Case) -> None:
        """The running task judges this case: requests of it and of the tasks that it starts belong to the case."""

    def asking(self, questions: Sequence[Question]) -> None:
        """The running task puts these questions to a model: its next requests are about them."""

    def attempted(self, attempt: JudgeAttempt) -> None:
        """One request to a model is over."""

    def repaired(self, model: str, *, requested: int, answered: int) -> None:
        """So many questions were asked again because their answers were invalid, and so many were answered then."""

    def looked_up(self, *, hits: int, misses: int) -> None:
        """The cache answered ``hits`` questions and not ``misses`` others."""

    def flagged(self, model: str, flag: Flag) -> None:
        """An answer contradicts what can be decided without a judge, or the members of a panel disagree."""
