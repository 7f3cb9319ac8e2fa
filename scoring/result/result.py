"""Result: a number with its method, or no number with the reason. Never a default.

Its details may hold the single steps behind the value. A band turns the value into a rating, a blocker into a refusal
to pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, TypeAlias

from msgspec import Struct, field

from .reason import Reason

OUTAGES: Final = ("judge unavailable", "embeddings unavailable")
"""How the reason of a failed question begins that nobody could be asked, whatever it was about."""
BEHIND: Final = "more waits for it than it can answer"
"""Why a trace got no answer in time without an outage: it had its turn no less than those that got one."""


def is_of_outage(reason: str) -> bool:
    """Whether a question failed because an outage kept it from being asked in time.

    Only our own words are asked: a text that a reason quotes, such as that of a trace, does not choose what counts.
    """
    judge, embeddings = OUTAGES
    words = reason.template if isinstance(reason, Reason) else ""
    return (judge in words and BEHIND not in words) or embeddings in words


def is_behind(reason: str) -> bool:
    """Whether a question failed because more waited for the judge than it could answer, by our own words as well."""
    return isinstance(reason, Reason) and BEHIND in reason.template


class Method(StrEnum):
    """How a value was decided, from certain to estimated."""

    EXACT = "exact"
    LEXICAL = "lexical"
    EMBEDDING = "embedding"
    JUDGE = "judge"
    HUMAN = "human"
    REPORTED = "reported"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One judged question: the model, the prompt, the call, and its cost.

    ``prompt_version`` is the SHA-256 of the prompt's file. ``cost_usd`` is the cost of the whole call, with or without
    an answer: all ``requests`` to models (of a panel, and repeated ones) and their tokens. Answers of one call share
    its id in ``call`` and are paid once. An empty ``call`` marks an answer from the cache, which cost nothing now.
    ``share`` is the part of the call's cost that belongs to one score: the shares of all scores of a trace sum to 1.
    ``flags`` note doubts (a contradiction with plain rules), repairs, or that the stated cost is too low. For a panel,
    ``votes`` is each model's vote as JSON, and ``dissent`` the share in [0, 1] of votes that differ from the answer.
    ``certainty`` is the answer's probability by the model's tokens, None where it gives none.
    """

    model: str
    prompt_version: str
    cost_usd: float = 0.0
    call: str = ""
    flags: tuple[str, ...] = ()
    requests: int = 1
    input_tokens: int = 0
    output_tokens: int = 0
    share: float = 1.0
    votes: tuple[tuple[str, str], ...] = ()
    dissent: float = 0.0
    certainty: float | None = None


class Scored(Struct, frozen=True, kw_only=True):
    """A measured, finite value; ``details`` is what a reader needs to check it, as JSON.

    ``judgements`` are the judged answers behind the value.
    """

    value: float
    method: Method = Method.EXACT
    reason: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    judgements: tuple[Judgement, ...] = ()
    status: ClassVar[str] = "scored"

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not math.isfinite(self.value):
            raise ValueError(f"a score must be a finite number, got {self.value!r}")


class NotApplicable(Struct, frozen=True):
    """There is nothing to measure: the metric's weight goes to the others, coverage stays."""

    reason: str
    status: ClassVar[str] = "not_applicable"


class Proven(Struct, frozen=True, kw_only=True):
    """The certain bounds of an unknown value, None where there is none, and the answers that prove them.

    One refuted claim of ten leaves a rate of nine tenths at most, whatever the others are. A bound may reach a blocker
    or miss a threshold; it never counts as the value.
    """

    at_least: float | None = None
    at_most: float | None = None
    method: Method = Method.EXACT
    judgements: tuple[Judgement, ...] = ()


class Unavailable(Struct, frozen=True):
    """What the metric needs is missing (no reference, no judge, no embeddings): coverage falls.

    ``proven`` holds the bounds that are certain nevertheless.
    """

    reason: str
    proven: Proven | None = None
    status: ClassVar[str] = "unavailable"


class Failed(Struct, frozen=True):
    """The evaluation failed (a judge that timed out, an answer that did not parse): coverage falls.

    ``proven`` holds the bounds that are certain nevertheless.
    """

    reason: str
    proven: Proven | None = None
    status: ClassVar[str] = "error"


Result: TypeAlias = Scored | NotApplicable | Unavailable | Failed


LOWEST: Final = "lowest"
"""Key of the details of a metric of steps: the steps with the lowest values, span id → value."""
MATCHING: Final = "matching"
"""Key of the same details: the number of matching steps."""
OBSERVATIONS: Final = "observations"
"""Key of the same details: Langfuse's id of a step by its span id, where the two differ."""


def lowest_steps(details: Mapping[str, object]) -> dict[str, float]:
    """The steps with the lowest values, by span id, the lowest first; none for a metric of the whole trace.

    >>> lowest_steps({"spans": 2, "matching": 2, "lowest": {"b7ad6b7169203331": 0.0}})
    {'b7ad6b7169203331': 0.0}
    >>> lowest_steps({"lowest": 3})
    {}
    """
    found = details.get(LOWEST)
    if MATCHING not in details or not isinstance(found, Mapping):
        return {}
    return {str(span): float(value) for span, value in found.items() if isinstance(value, int | float)}


def details_of_steps(
    matching: int, lowest: Mapping[str, float], observations: Mapping[str, str | None]
) -> dict[str, object]:
    """The details that ``lowest_steps`` and ``observation_of`` read; ``observations`` has Langfuse's ids of spans.

    >>> details_of_steps(2, {"b7ad6b7169203331": 0.0}, {"b7ad6b7169203331": None})
    {'matching': 2, 'lowest': {'b7ad6b7169203331': 0.0}}
    """
    known = {span_id: found for span_id in lowest if (found := observations.get(span_id)) is not None}
    return {MATCHING: matching, LOWEST: lowest, **({OBSERVATIONS: known} if known else {})}


def observation_of(details: Mapping[str, object], span_id: str) -> str:
    """The id by which Langfuse knows a step.

    >>> observation_of({"observations": {"b7ad6b7169203331": "generation-7"}}, "b7ad6b7169203331")
    'generation-7'
    >>> observation_of({}, "b7ad6b7169203331")
    'b7ad6b7169203331'
    """
    known = details.get(OBSERVATIONS)
    return str(known.get(span_id, span_id)) if isinstance(known, Mapping) else span_id


_DIGITS = 9
"""Values are compared after rounding to 9 decimals, so that 18/20 is never 0.8999999 (rubrics §1.3)."""


def _rounded(value: float) -> float:
    return value if value in (0.0, 1.0) else round(value, _DIGITS)  # most are either: to round takes 0.4 µs


@dataclass(frozen=True, slots=True)
class Bands:
    """Ratings from best to worst, each with the bound at which it begins; a value that reaches none is ``otherwise``.

    A value at a bound is in the better band. ``higher_is_better``: whether "better" means higher.
    """

    steps: tuple[tuple[str, float], ...]
    otherwise: str
    higher_is_better: bool = True

    def rating(self, value: float) -> str:
        rounded = _rounded(value)
        for rating, bound in self.steps:
            if (rounded >= _rounded(bound)) if self.higher_is_better else (rounded <= _rounded(bound)):
                return rating
        return self.otherwise

    @property
    def acceptable(self) -> float:
        """The worst value that is still acceptable: the last bound."""
        return self.steps[-1][1]

    @property
    def good(self) -> float:
        """The worst value that is still good: the first bound."""
        return self.steps[0][1]

    def describe(self) -> str:
        """The bands in one line: ``good >= 0.95, acceptable >= 0.9, else fail``."""
        sign = ">=" if self.higher_is_better else "<="
        return ", ".join(f"{rating} {sign} {bound:g}" for rating, bound in self.steps) + f", else {self.otherwise}"


def at_least(*, good: float, acceptable: float, otherwise: str = "fail") -> Bands:
    """Bands of a value that should be high: ``good`` from its bound up, and so on."""
    return Bands((("good", good), ("acceptable", acceptable)), otherwise)


def at_most(*, good: float, acceptable: float) -> Bands:
    """Bands of a value that should be low (a rate of errors)."""
    return Bands((("good", good), ("acceptable", acceptable)), "fail", higher_is_better=False)


def count(*, passes: int, warns: int) -> Bands:
    """Bands of a count of mistakes: pass, warning, blocker (seed 000, fabricated entities, missing labels)."""
    return Bands((("pass", passes), ("warning", warns)), "blocker", higher_is_better=False)


def must_be_one() -> Bands:
    """A binary that has to be 1 (prerequisites)."""
    return Bands((("pass", 1.0),), "fail")


class Effect(StrEnum):
    """A blocker's effect on the verdict (rubrics §1.4)."""

    INVALID = "invalid"
    """The rubric's formula names it: there is no composite."""
    DISQUALIFIED = "disqualified"
    """Only its table or the scorecard names it: the number stands, the verdict does not pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """Blocks when the value is ``below`` or ``above`` its bound, strictly, after rounding to 9 decimals."""

    effect: Effect
    below: float | None = None
    above: float | None = None

    def blocks(self, value: float) -> bool:
        return self._is_below(value) or self._is_above(value)

    def blocks_all(self, least: float | None, most: float | None) -> bool:
        """Whether it blocks every value between two bounds; None is an unknown bound."""
        return (most is not None and self._is_below(most)) or (least is not None and self._is_above(least))

    def _is_below(self, value: float) -> bool:
        return self.below is not None and _rounded(value) < _rounded(self.below)

    def _is_above(self, value: float) -> bool:
        return self.above is not None and _rounded(value) > _rounded(self.above)

    def describe(self) -> str:
        bounds = (("<", self.below), (">", self.above))
        return f"{' or '.join(f'{sign} {at:g}' for sign, at in bounds if at is not None)}: {self.effect.value}"
