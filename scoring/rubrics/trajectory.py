"""trajectory: a run that does not fit a prompt, judged by its outline and its important steps, at a bounded cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.lexical.shown_text import MAX_REASON, label, plain
from sidejudge.scoring.lexical.token_estimate import estimate
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.metrics.run_ending import no_run
from sidejudge.scoring.metrics.settle import NoValueError, bounded, judgements_of, settle, settled, unavailable
from sidejudge.scoring.metrics.trajectory_selection import Budget, outline, requests_of, select
from sidejudge.scoring.metrics.trajectory_steps import MOST_STEPS, Trajectory, TrajectoryStep
from sidejudge.scoring.questions import contract
from sidejudge.scoring.questions.kinds import CATEGORIES, IMPACTS, MOST_CHOSEN, ChooseSteps, FindErrors, ReachedGoal
from sidejudge.scoring.questions.question import Answer, Reply, Steps
from sidejudge.scoring.result.reason import Reason, cut, own, quoted
from sidejudge.scoring.result.result import (
    Bands,
    Method,
    Result,
    Scored,
    Unavailable,
    at_least,
    details_of_steps,
)
from sidejudge.scoring.verdict.rubric import Criterion, Rubric

from .trajectory_signs import trajectory

SOURCE: Final = "TRAIL (Deshpande et al. 2025); MAST (Cemri et al. 2025)"
COSTS: Final[Mapping[str, float]] = {"high": 0.5, "medium": 0.2, "low": 0.05}
"""The deduction of an error from the run's soundness, by its impact."""
_STEP_SCORES: Final[Mapping[str, float]] = {"high": 0.0, "medium": 0.5, "low": 0.8}
_GOALS: Final[Mapping[str, float]] = {"all": 1.0, "part": 0.5, "none": 0.0}
_TASK: Final = 8_000
"""Most characters of the task that are shown."""
_LEAST_QUOTATION: Final = 8
"""Fewest characters for a quotation to prove anything."""
_MOST_FINDINGS: Final = 50
_MOST_SIGNS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An error that a judge found. It is dropped unless the step contains ``quotation``."""

    category: str
    step: int
    evidence: str
    quotation: str
    impact: str


def read_findings(value: object) -> tuple[Finding, ...]:
    """The findings of one answer; ``ValueError`` names the fault."""
    listed = contract.required(contract.read_object(value), "findings")
    if not isinstance(listed, list | tuple):
        raise ValueError("findings is not a list")  # noqa: TRY004  # one kind of error for every breach
    return tuple(_finding(one) for one in listed)


def _finding(one: object) -> Finding:
    found = contract.read_object(one)
    step = contract.required(found, "step")
    return Finding(
        category=contract.one_of(found, "category", CATEGORIES),
        step=int(step) if isinstance(step, int | str) and str(step).isascii() and str(step).isdigit() else 0,
        evidence=contract.text(found, "evidence"),
        quotation=str(contract.required(found, "quotation")),
        impact=contract.one_of(found, "impact", IMPACTS),
    )


def upheld(run: Trajectory, findings: Iterable[Finding]) -> tuple[list[Finding], Counter[str]]:
    """The findings that the trace confirms, once each, the worst first, and the number of dropped ones by reason."""
    dropped: Counter[str] = Counter()
    kept: dict[tuple[int, str], Finding] = {}
    for finding in findings:
        if finding.step not in run:
            dropped["no_such_step"] += 1
        elif not stands_in(finding.quotation, run[finding.step]):
            dropped["not_quoted"] += 1
        else:
            key = finding.step, finding.category
            if key not in kept or COSTS[finding.impact] > COSTS[kept[key].impact]:
                kept[key] = finding
    return sorted(kept.values(), key=lambda each: (-COSTS[each.impact], each.step)), dropped


def stands_in(quotation: str, step: TrajectoryStep) -> bool:
    """Whether a step contains a quotation word for word, except for white space and surrounding marks."""
    wanted = _evened(quotation).strip("\"“”„'‘’` ")
    if not wanted:
        return False
    for text in step.quotable:
        held = _evened(text)
        if wanted in held and (len(wanted) >= _LEAST_QUOTATION or wanted == held):
            return True
    return False


def _evened(text: str) -> str:
    """A text as a prompt shows it, with single spaces."""
    return " ".join(plain(text).split())


def _run(case: Case) -> Trajectory:
    if case.trace is None and case.tools_used is None:
        raise unavailable(Reason("the case has neither a trace nor tool calls, so that it has no steps"))
    if (gap := case.once(no_run)) is not None:
        raise NoValueError(gap)
    if not case.content_captured:
        raise unavailable(Reason("contents were not captured"))
    if case.trace is not None and len(case.trace.spans) > MOST_STEPS:
        raise unavailable(Reason("the run has more than {most} steps", most=MOST_STEPS))
    run = case.once(trajectory)
    if not run.steps:
        raise unavailable(Reason("no step of the run says anything"))
    return run


def _task(case: Case) -> str:
    return label(text_or_json(case.input), _TASK) if case.input is not None else "(not given)"


def _sound_steps(budget: Budget) -> Callable[[Case], Steps]:
    def measure(case: Case) -> Steps:
        run = _run(case)
        lines = outline(run, budget.outline_tokens(run))
        tokens = budget.for_steps(run, estimate(lines))
        marked: Sequence[int] = select(run, tokens)
        asked: Sequence[Reply] = ()
        if len(marked) < len(run.steps):
            asked = yield (ChooseSteps(_task(case), lines),)
            (chosen,), _, _ = settled(asked, _read_chosen)
            marked = select(run, tokens, first=(*select(run, tokens // 2), *chosen))
        questions = tuple(
            FindErrors(_task(case), outline(run, budget.outline_tokens(run), numbers), text, numbers, len(run.steps))
            for numbers, text in requests_of(run, marked, budget.shown_tokens(run))
        )
        replies = yield questions
        return _soundness(run, marked, asked, replies)

    return measure


def _read_achieved(value: object) -> float:
    return _GOALS[contract.one_of({"achieved": value}, "achieved", tuple(_GOALS))]


def _read_chosen(value: object) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or any(type(one) is not int for one in value):
        raise ValueError("not a list of numbers")
    return tuple(value[:MOST_CHOSEN])


def _soundness(run: Trajectory, shown: Sequence[int], asked: Sequence[Reply], replies: Sequence[Reply]) -> Result:
    answered = [reply for reply in replies if isinstance(reply, Answer)]
    partly, whole = settle(answered, read_findings), settle(replies, read_findings)
    if not isinstance(partly, tuple):
        return partly
    findings, dropped = upheld(run, (finding for found in partly[0] for finding in found))
    value = max(0.0, 1.0 - sum(COSTS[finding.impact] for finding in findings))
    if not isinstance(whole, tuple):
        return bounded(whole, Reason("{n} errors found", n=len(findings)), answered if findings else (), at_most=value)
    seen = sum(run[number].tokens for number in shown) / run.tokens
    return Scored(
        value=value,
        method=Method.JUDGE,
        reason=_reason(run, shown, findings, seen),
        details=_details(run, shown, findings, dropped, seen),
        judgements=judgements_of((*asked, *answered)),
    )


def _reason(run: Trajectory, shown: Sequence[int], findings: Sequence[Finding], seen: float) -> str:
    extent = Reason(
        "{n} of {all} steps shown in full, {share} % of their tokens",
        n=len(shown), all=len(run.steps), share=round(100 * seen),
    )  # fmt: skip
    if not findings:
        return Reason("no error found; ") + extent
    worst = findings[0]
    return cut(
        Reason(
            "{n} errors, the worst of {category} at step {step}: {evidence}; ",
            n=len(findings), category=own(worst.category), step=worst.step, evidence=quoted(label(worst.evidence, 300)),
        )
        + extent,
        MAX_REASON,
    )  # fmt: skip


def _details(
    run: Trajectory, shown: Sequence[int], findings: Sequence[Finding], dropped: Mapping[str, int], seen: float
) -> dict[str, object]:
    lowest: dict[str, float] = {}
    for finding in reversed(findings):
        lowest[run[finding.step].span.span_id] = _STEP_SCORES[finding.impact]
    worst = dict(sorted(lowest.items(), key=lambda item: item[1])[:_MOST_SIGNS])
    return {
        "steps": len(run.steps), "shown": len(shown), "share_shown": round(seen, 4), "errors": len(findings),
        "dropped": dict(dropped),
        **details_of_steps(len(run.steps), worst, {each.span.span_id: each.span.observation_id for each in run.steps}),
        "failure_code": findings[0].category if findings else None,
        "findings": [
            {
                "step": finding.step, "span_id": run[finding.step].span.span_id, "category": finding.category,
                "impact": finding.impact, "evidence": label(finding.evidence, 400),
                "quotation": label(finding.quotation, 300),
            }
            for finding in findings[:_MOST_FINDINGS]
        ],
        "signs": [
            {"span_id": run[each.step].span.span_id, "sign": f"{each.category} error, {each.impact} impact"}
            for each in findings[:_MOST_SIGNS]
        ],
    }  # fmt: skip


def _goal_reached(budget: Budget) -> Callable[[Case], Steps]:
    def measure(case: Case) -> Steps:
        run = _run(case)
        if case.input is None:
            return Unavailable(Reason("what the run was to achieve is not known: the trace has no input"))
        if not case.complete:
            return Unavailable(Reason("the trace is incomplete, so that its end is not known"))
        numbers = _ending(run, budget.for_end(run))
        (shown, text) = requests_of(run, numbers, budget.shown_tokens(run))[-1]
        lines = outline(run, budget.outline_tokens(run), numbers)
        replies = yield (ReachedGoal(_task(case), lines, text, shown, len(run.steps)),)
        (value,), method, judgements = settled(replies, _read_achieved)
        (reply,) = (reply for reply in replies if isinstance(reply, Answer))
        return Scored(value=value, method=method, reason=label(reply.reason, MAX_REASON), judgements=judgements)

    return measure


def _ending(run: Trajectory, tokens: int) -> tuple[int, ...]:
    """As many of the last steps as fit, with the run's answer; the very last in any case."""
    left = tokens
    chosen: list[int] = []
    for step in sorted(run.steps, key=lambda each: (-each.span.end_ns, -each.number)):
        if chosen and step.tokens > left:
            break
        chosen.append(step.number)
        left -= step.tokens
    return tuple(sorted(chosen))


def _detail(_case: Case, _composite: float | None, results: Mapping[str, Result]) -> dict[str, object]:
    """``signs``: the errors found, each with its span, in the form of ``run_health``."""
    found = results.get("sound_steps")
    listed = found.details.get("signs") if isinstance(found, Scored) else None
    return {"signs": [{"metric": "sound_steps", **sign} for sign in listed]} if isinstance(listed, list) else {}


def trajectory_rubric(budget: Budget) -> Rubric:
    """The rubric under a budget of judge tokens."""
    goal_reached = Metric(
        id="goal_reached",
        title="Goal reached",
        meaning="What the run achieved of its task, by its outline and its last steps in full.",
        formula="1 for all of the task, 0.5 for a part, 0 for nothing",
        source=SOURCE,
        measure=_goal_reached(budget),
        bands=Bands((("all", 1.0), ("part", 0.5)), "none"),
        methods=(Method.JUDGE,),
        undefined="there is no judge, no task, no trace, the trace is incomplete, or the steps do not show it",
    )
    sound_steps = Metric(
        id="sound_steps",
        title="Sound steps",
        meaning="How free the run is of errors of reasoning, planning, execution and coordination, at the steps that "
        "are shown to the judge in full. An error counts only with words of its step that stand there.",
        formula="max(0, 1 − Σ cost of the errors): 0.5 for a high impact, 0.2 for a medium, 0.05 for a low one. Shown "
        f"are an outline of all steps and some in full, for {budget.share:.0%} of the run's tokens, at least "
        f"{budget.least} and at most {budget.most}, {budget.request} in one request",
        source=SOURCE,
        measure=_sound_steps(budget),
        bands=at_least(good=0.95, acceptable=0.75),
        methods=(Method.JUDGE,),
        undefined="there is no judge, no trace, or contents were not captured",
    )
    return Rubric(
        id="trajectory",
        title="Trajectory",
        source=SOURCE,
        formula="0.5 × goal_reached + 0.5 × sound_steps",
        criteria=(Criterion(metric=goal_reached, weight=0.5), Criterion(metric=sound_steps, weight=0.5)),
        pass_mark=0.8,
        detail=_detail,
    )


RUBRIC = trajectory_rubric(Budget())
