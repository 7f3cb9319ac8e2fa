"""Registry: all checks by name; a declaration (``{not-contains: …}``) becomes a function of a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, cast

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.questions.question import Begun, Steps
from sidejudge.scoring.result.reason import Reason, own
from sidejudge.scoring.result.result import NotApplicable, Result, Scored, Unavailable
from sidejudge.scoring.trace.span import Json

from . import documents, language, privacy, similarity, spending, texts, tools
from .check import Check, CheckError, Finding, Subject
from .similarity import Comparison, ask_similar
from .target import Target, read_target

CHECKS: Final[Mapping[str, Check]] = {
    check.name: check
    for room in (texts, documents, similarity, spending, tools, privacy, language)
    for check in room.CHECKS
}
"""Every check by its name. ``not-NAME`` is its opposite."""
NOT: Final = "not-"
_NO_REFERENCE: Final = Unavailable(Reason("the expected outcome is not known"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledCheck:
    """A declared check: its function and its card. ``formula`` names rule, argument and target."""

    check: Check
    negated: bool
    on: str
    measure: Callable[[Case], Begun]

    @property
    def holds(self) -> str:
        """When the metric is 1, in words."""
        return f"not: {self.check.holds}" if self.negated else self.check.holds


_ASK: Final = "what a judge decides is a question: write ask: … in place of check"
_CODE: Final = "code is cel: …, or python: module:function, in place of check"
_NOT_CHECKS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("llm-rubric", "model-graded-closedqa", "g-eval", "factuality", "answer-relevance", "context-faithfulness",
         "context-recall", "context-relevance", "conversation-relevance", "pi", "classifier", "moderation"), _ASK,
    ),
    **dict.fromkeys(("javascript", "python", "webhook", "ruby"), _CODE),
}  # fmt: skip
"""Assertions of promptfoo that are no checks here, and what to use instead."""


def compile_check(declared: Json, on: str = "output") -> CompiledCheck:
    """The function of a declared check; ``CheckError`` describes what is wrong with the declaration, and where.

    ``declared`` is a map with one name, or a name alone. A target with several values passes when one of them passes
    the check; the opposite (``not-``) passes when none does.
    """
    name, argument = _one(declared)
    negated = name.startswith(NOT)
    check = CHECKS.get(name.removeprefix(NOT))
    if check is None:
        near = get_close_matches(name.removeprefix(NOT), CHECKS, n=1)
        instead = _NOT_CHECKS.get(name.removeprefix(NOT))
        meant = instead or (f"did you mean {near[0]}?" if near else f"valid here: {', '.join(CHECKS)}")
        raise CheckError(f"is not a check; {meant}", name)
    if check.subject is Subject.CASE and on != "output":
        raise CheckError(f"{check.name} looks at the whole case, so 'on' has no meaning here", "on")
    target = read_target(on)
    try:
        test = check.build(argument)
    except CheckError as error:
        raise CheckError(str(error), f"{name}.{error.path}".rstrip(".") if error.path else name) from None
    return CompiledCheck(check=check, negated=negated, on=on, measure=_measure(check, test, target, negated=negated))


def _one(declared: Json) -> tuple[str, Json]:
    if isinstance(declared, str):
        return declared, True
    if not isinstance(declared, dict) or len(declared) != 1:
        raise CheckError("must be one check with its argument, such as {contains: text}" + _meant_by(declared))
    return next(iter(declared.items()))


def _meant_by(declared: Json) -> str:
    """The check in this form, for a check written in promptfoo's form."""
    if not isinstance(declared, dict) or not isinstance(declared.get("type"), str):
        return ""
    name = str(declared["type"])
    argument = declared.get("value", True)
    return f": write {{{name}: {label(str(argument), 40)}}}" if name.removeprefix(NOT) in CHECKS else ""


def _measure(check: Check, test: object, target: Target, *, negated: bool) -> Callable[[Case], Begun]:
    settle = _settler(check, negated=negated)
    if check.subject is Subject.CASE:
        of_case = cast("Callable[[Case], Result]", test)
        return of_case if not negated else lambda case: settle(of_case(case))
    if check.subject is Subject.PAIR:
        return _compared(cast("Comparison", test), target, settle)
    of_value = cast("Callable[[Json], Finding]", test)
    if check.subject is Subject.TEXT:
        of_text = cast("Callable[[str], Finding]", test)

        def of_value(value: Json) -> Finding:
            return of_text(value if type(value) is str else text_or_json(value))

    def measure(case: Case) -> Result:
        found = target(case)
        if type(found) is not tuple:
            return cast("Result", found)
        if len(found) == 1:
            return settle(of_value(found[0]))
        return settle(_best([of_value(value) for value in found]))

    return measure


def _settler(check: Check, *, negated: bool) -> Callable[[Finding], Result]:
    """The function from a finding to a result; equal findings give one object, which ``outcome`` recognises."""
    name = f"{NOT}{check.name}" if negated else check.name
    holds = Scored(value=1.0, method=check.method)
    fails = Scored(value=0.0, method=check.method, reason=Reason("{check} does not hold", check=own(name)))
    of_true, of_false = (fails, holds) if negated else (holds, fails)

    def settle(found: Finding) -> Result:
        if found is True:
            return of_true
        if found is False:
            return of_false
        if isinstance(found, Scored):
            if not negated:
                return found
            value = round(1.0 - found.value, 12)
            return Scored(value=value, method=found.method, reason=found.reason, details=found.details)
        if isinstance(found, float):
            return Scored(value=round(1.0 - found, 12) if negated else found, method=check.method)
        return cast("Result", found)

    return settle


def _best(found: list[Finding]) -> Finding:
    """The best result among the values; without a full match, one undefined value makes the whole undefined."""
    best = max(found, key=_value, default=False)
    if _value(best) >= 1.0:
        return best
    unknown = next((each for each in found if not isinstance(each, bool | float | Scored)), None)
    return best if unknown is None else unknown


def _value(found: Finding) -> float:
    return found.value if isinstance(found, Scored) else float(found) if isinstance(found, bool | float) else -1.0


def _compared(comparison: Comparison, target: Target, settle: Callable[[Finding], Result]) -> Callable[[Case], Begun]:
    def wanted(case: Case) -> str | None:
        if comparison.wanted is not None:
            return comparison.wanted
        return None if case.expected_outcome is None else text_or_json(case.expected_outcome)

    def measure(case: Case) -> Begun:
        found = target(case)
        if isinstance(found, NotApplicable | Unavailable):
            return found
        beside = wanted(case)
        if beside is None:
            return _NO_REFERENCE
        reported = [value if isinstance(value, str) else text_or_json(value) for value in found]
        if comparison.measure is None:
            return _settled(ask_similar(reported, beside, comparison.least), settle)
        return settle(_best([comparison.measure(each, beside) for each in reported]))

    return measure


def _settled(steps: Steps, settle: Callable[[Finding], Result]) -> Steps:
    return settle((yield from steps))
