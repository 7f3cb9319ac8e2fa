"""Panel: one request goes to every member at the same time; the agreed answer to each question, or none, comes out.

Each field of an answer is decided by itself. A yes or no and a word of a scale take the majority, fractions the median.
Whole numbers take the majority, and under the rule ``median`` the lower one in the middle where there is no majority.
Texts, failure codes and turns are not voted on: they are copied from the member that agrees with the most decided
fields. A field without a majority leaves the panel split: it has no value, and the others stay.
"""

from __future__ import annotations

import asyncio
import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from sidejudge.integrations.judge.client import JudgeModel
from sidejudge.integrations.provider.attempt import JudgeObserver
from sidejudge.monitor.config.evaluators import JudgeSection
from sidejudge.monitor.config.judge_choice import judge_name
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.judging.answers import JudgedValue
from sidejudge.scoring.judging.form import Form
from sidejudge.scoring.judging.layout import form_for
from sidejudge.scoring.judging.request import JudgeRequest
from sidejudge.scoring.questions.kinds import CANNOT_TELL
from sidejudge.scoring.questions.question import NoAnswer, Question
from sidejudge.scoring.result.reason import Reason, own, quoted
from sidejudge.scoring.status.snapshots import JudgeModelSnapshot
from sidejudge.scoring.verdict.review_reason import JUDGES_DISAGREE

from .answer_cache import CachedAnswer
from .bill import JudgeBill
from .panel_member import PanelMember, UnansweredError

Rule = Literal["majority", "median"]
Field: TypeAlias = bool | int | float | str

SPLIT: Final = "the panel is split"
_NOT_VOTED: Final = frozenset({"failure_code", "turns", "reason", "reasoning", "rationale"})
_LIST: Final = "*"
"""Ends the name of a list of findings, which is taken whole from the member in the middle."""
_ABSTAINS: Final = ("", CANNOT_TELL)
"""Answers that are no votes."""
_WHOLE: Final = ""
"""The name of the only field of an answer that is no object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """A judge: its section of the configuration, with the models of it and of its panel.

    ``others`` are further judges by name; budget, cache and redaction are those of the first one.
    """

    section: JudgeSection
    models: tuple[JudgeModel, ...]
    others: Mapping[str, JudgeSettings] = field(default_factory=dict)


class SplitError(SidejudgeError, ValueError):
    """No answer has the panel behind it. ``decided`` is the vote, with None for each of the ``split`` fields."""

    def __init__(self, message: str, split: Sequence[str] = (), decided: Vote | None = None) -> None:
        super().__init__(message)
        self.split, self.decided = tuple(split), decided


@dataclass(frozen=True, slots=True)
class Vote:
    """The panel's answer. ``side`` is the index of the member whose texts it carries.

    ``dissent`` is the share in [0, 1] of the members' votes, over all fields, that differ from the decision.
    """

    value: object
    side: int
    dissent: float


def vote(values: Sequence[object], rule: Rule, levels: Sequence[float] = ()) -> Vote:
    """Combine the members' answers.

    Args:
        values: at least one answer, all to the same question.
        rule: how whole numbers without a majority are decided.
        levels: the only numbers that may be decided on, of an answer that is a number alone; none: any.

    Raises:
        SplitError: a field has no majority; it holds the decisions on the others.
    """
    ballots = [votes(value) for value in values]
    names = tuple(dict.fromkeys(name for ballot in ballots for name in ballot))
    decided: dict[str, Field | None] = {}
    splits: dict[str, SplitError] = {}
    for name in names:
        try:
            decided[name] = _decide(name, [ballot.get(name) for ballot in ballots], rule)
        except SplitError as error:
            splits[name] = error
    agreeing = [sum(ballot.get(name) == value for name, value in decided.items()) for ballot in ballots]
    side = agreeing.index(max(agreeing))
    dissent = 1 - sum(agreeing) / (len(ballots) * len(names)) if names else 0.0
    value = _with(values[side], decided)
    if isinstance(value, Mapping):
        value = {**value, **_lists(values, ballots, decided, side)}
    if splits:
        rest = {**value, **dict.fromkeys(splits)} if isinstance(value, Mapping) and decided else None
        found = None if rest is None else Vote(rest, side, dissent)
        raise SplitError(str(next(iter(splits.values()))), tuple(splits), found)
    if levels and value not in levels:
        raise SplitError(f"{SPLIT}: the middle is none of {', '.join(f'{each:g}' for each in levels)}")
    return Vote(value, side, dissent)


def votes(value: object) -> dict[str, Field]:
    """The fields of an answer that are voted on, by name. An answer that is a name alone is one, whatever its letters.

    A list of findings counts as the share of them that is true, a list of steps as the mean of their scores.
    """
    if not isinstance(value, Mapping):
        return {_WHOLE: value} if isinstance(value, str) and value not in _ABSTAINS else _ballot(_WHOLE, value)
    found: dict[str, Field] = {}
    for name, part in value.items():
        if name not in _NOT_VOTED:
            found |= _ballot(str(name), part)
    return found


def _ballot(name: str, part: object) -> dict[str, Field]:
    match part:
        case bool() | int() | float():
            return {name: part}
        case str() if part and not any(mark.isspace() for mark in part):
            return {name: part}
        case [*items] if items and all(isinstance(item, bool) for item in items):
            return {f"{name}[{at}]": bool(item) for at, item in enumerate(items)}
        case [*items] if findings := [item for item in items if isinstance(item, Mapping)]:
            numbers = [float(each) for one in findings for each in one.values() if isinstance(each, bool | int | float)]
            return {name + _LIST: statistics.fmean(numbers)} if numbers else {}
        case _:
            return {}


def _decide(name: str, given: Sequence[Field | None], rule: Rule) -> Field | None:
    """The value of a field; None where most members leave it out."""
    ballots = [each for each in given if each is not None]
    if 2 * len(ballots) <= len(given):
        return None
    numbers = [each for each in ballots if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(numbers) == len(ballots) and any(isinstance(each, float) for each in numbers):
        middle = statistics.median(numbers)
        if name.endswith(_LIST) and middle not in numbers:
            raise SplitError(f"{SPLIT}: {len(ballots)} lists of findings, and none in the middle")
        return middle
    (most, count), *_ = Counter(ballots).most_common()
    if 2 * count > len(ballots):
        return most
    if rule == "median" and len(numbers) == len(ballots):
        return statistics.median_low(numbers)
    raise SplitError(f"{SPLIT}: no answer has more than half of {len(ballots)} votes")


def _with(chosen: object, decided: Mapping[str, Field | None]) -> object:
    """The chosen member's answer with the decided fields in place of its own."""
    if isinstance(chosen, Mapping):
        return {name: _field(str(name), part, decided) for name, part in chosen.items()}
    return _field(_WHOLE, chosen, decided)


def _lists(
    values: Sequence[object], ballots: Sequence[Mapping[str, Field]], decided: Mapping[str, Field | None], side: int
) -> dict[str, object]:
    """The lists of findings by field, each from a member in the middle: the chosen one where it is one of them."""
    found: dict[str, object] = {}
    for name, middle in decided.items():
        if name.endswith(_LIST) and middle is not None:
            own = next(at for at in (side, *range(len(values))) if ballots[at].get(name) == middle)
            if isinstance(answer := values[own], Mapping):
                found[name.removesuffix(_LIST)] = answer[name.removesuffix(_LIST)]
    return found


def _field(name: str, own: object, decided: Mapping[str, Field | None]) -> object:
    if isinstance(own, list | tuple):
        if own and all(isinstance(item, bool) for item in own):
            return type(own)(decided.get(f"{name}[{at}]", item) for at, item in enumerate(own))
        return own
    value = decided.get(name)
    return own if value is None else value


class JudgePanel:
    """The members that are asked together, one for each model."""

    def __init__(self, members: Sequence[PanelMember], section: JudgeSection, observer: JudgeObserver) -> None:
        self._members, self._rule, self._observer = members, section.panel_rule, observer
        self.models: Final = tuple(member.model for member in members)
        self.context_tokens: Final = section.context_tokens
        """As configured; None: the least that is known of the models."""
        self.outline: Final = section.outline
        """Whether questions on a run that does not fit use its outline."""
        names = [model.name for model in self.models]
        self.name: Final = judge_name(names, self._rule)
        rule = self._rule if len(names) > 1 else ""
        self.identity: Final = json.dumps([rule, *(model.identity for model in self.models)])
        """All settings that change an answer, besides the prompt; ``name`` is for people."""
        self._quorum: Final = len(names) // 2 + 1

    def states(self) -> dict[str, JudgeModelSnapshot]:
        """The circuit breaker of each model."""
        return {member.model.name: member.state() for member in self._members}

    @property
    def estimating(self) -> frozenset[str]:
        """The models that give no account of their tokens, so that their cost is estimated."""
        return frozenset(member.model.name for member in self._members if member.estimating)

    @property
    def unpriced(self) -> frozenset[str]:
        """The models without a known price; their cost is unknown too."""
        return frozenset(member.model.name for member in self._members if member.unpriced)

    @property
    def outage(self) -> str | None:
        """Why no answer is possible now: too many breakers are open for a majority. None when one is possible."""
        shut = [state for member in self._members if (state := member.state()).circuit == "open"]
        return shut[0].reason if len(self._members) - len(shut) < self._quorum else None

    @property
    def cause(self) -> str:
        """A model whose breaker is open, and the error that opened it in the provider's words; empty without one."""
        shut = (each for each in self._members if each.state().circuit == "open" and each.breaker.cause)
        return next((f"{each.model.name}: {each.breaker.cause}" for each in shut), "")

    async def ask(self, request: JudgeRequest, bill: JudgeBill) -> dict[Question, CachedAnswer | NoAnswer]:
        """Ask every member and combine their answers question by question.

        Args:
            request: the same for all members.
            bill: receives the cost as it is spent.

        Raises:
            UnansweredError: fewer than a majority of the members could be asked. Where they have no price that a budget
                needs, none is.
        """
        priced = await asyncio.gather(*(member.price() for member in self._members), return_exceptions=True)
        unpriced = [each for each in priced if isinstance(each, UnansweredError)]
        if len(self._members) - len(unpriced) < self._quorum:
            raise unpriced[0]
        given = await asyncio.gather(*(member.ask(request, bill) for member in self._members), return_exceptions=True)
        for each in given:
            if isinstance(each, BaseException) and not isinstance(each, UnansweredError):
                raise each
        readings = [  # a model may be asked more than once, and each of its answers is a vote
            (member.model.name, each)
            for member, each in zip(self._members, given, strict=True)
            if not isinstance(each, BaseException)
        ]
        if len(readings) < self._quorum:
            raise next(each for each in given if isinstance(each, UnansweredError))
        combined: dict[Question, CachedAnswer | NoAnswer] = {}
        for question in request.questions:
            answers = [(name, each.answers[question]) for name, each in readings if question in each.answers]
            if len(answers) < self._quorum:
                faults = (each.faults[question] for _, each in readings if question in each.faults)
                combined[question] = NoAnswer(next(faults), failed=True)
            else:
                combined[question] = self._combine(answers, form_for(question))
        return combined

    def _combine(self, judged: Sequence[tuple[str, JudgedValue]], form: Form) -> CachedAnswer | NoAnswer:
        """The panel's answer. Fields that are ``apart`` in its form are independent: a split one affects no other."""
        answers = [each for _, each in judged]
        if len(self._members) == 1:
            (one,) = answers
            return CachedAnswer(
                value=one.value, reason=one.reason, prompt_version=one.prompt_version, flags=one.flags,
                certainty=one.certainty,
            )  # fmt: skip
        try:
            decision = vote([each.value for each in answers], self._rule, form.levels)
        except SplitError as error:
            if error.decided is None or not set(error.split) < set(form.apart):
                self._observer.flagged(self.name, "disagreement")
                return NoAnswer(
                    Reason("{error} ({votes})", error=own(str(error)), votes=quoted(_listed(judged))), failed=True
                )
            decision = error.decided
        side = answers[decision.side]
        flags = side.flags
        if decision.dissent > 0:
            self._observer.flagged(self.name, "disagreement")
            flags = (JUDGES_DISAGREE, *flags)
        return CachedAnswer(
            value=decision.value,
            reason=side.reason,
            prompt_version=side.prompt_version,
            flags=flags,
            votes=_ballots(judged),
            dissent=decision.dissent,
        )


def _ballots(judged: Sequence[tuple[str, JudgedValue]]) -> tuple[tuple[str, str], ...]:
    """Each member's vote as JSON, by model, numbered where one is asked more than once; texts are left out."""
    asked: Counter[str] = Counter()
    found: list[tuple[str, str]] = []
    for name, each in judged:
        asked[name] += 1
        number = f" ({asked[name]})" if asked[name] > 1 else ""
        found.append((name + number, _written(list(votes(each.value).items()))))
    return tuple(found)


def _written(fields: Sequence[tuple[str, object]]) -> str:
    alone = len(fields) == 1 and not fields[0][0]
    return json.dumps(fields[0][1] if alone else dict(fields))


def _listed(judged: Sequence[tuple[str, JudgedValue]]) -> str:
    return "; ".join(f"{name}: {ballot}" for name, ballot in _ballots(judged))
