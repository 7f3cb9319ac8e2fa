"""Run: asks configured judges golden questions, with repeats, within the budget.

Golden questions have known answers; they come from the files of ``golden/`` or from a rubric's labelled examples. A
case holds questions. A mapping under a trap's name holds what the trap changes about the question; a trap of the case
holds what it changes about the case. The right answer stays, unless the trap states its own (``right``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from sidejudge.integrations.cases.fields import case_of
from sidejudge.integrations.provider.attempt import JudgeAttempt, JudgeObserver
from sidejudge.monitor.config.document import read_document
from sidejudge.monitor.config.library import EXPECT
from sidejudge.monitor.config.section import DEFAULT_JUDGE
from sidejudge.monitor.evaluate.judge.judge_backend import JudgeBackend, JudgeStorage
from sidejudge.monitor.evaluate.judge.panel import JudgeSettings
from sidejudge.monitor.evaluate.judge.panel_member import Client
from sidejudge.scoring.calibration.judge_report import (
    MIN_ACCURACY,
    Effort,
    Given,
    GoldenAnswer,
    JudgeReport,
    judge_report,
)
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.judging.golden import TRAPS, Expected, GoldenCase, GoldenQuestion, Trap, facts
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.questions.kinds import AskDeclared, question_of_json
from sidejudge.scoring.questions.question import Answer, Question, Reply
from sidejudge.scoring.result.result import Method, Scored
from sidejudge.scoring.trace.span import Json, JsonRecord
from sidejudge.scoring.verdict.rubric import Rubric

_CALL: ContextVar[_CaseEffort] = ContextVar("golden case")


@dataclass(slots=True)
class _CaseEffort:
    """The effort of one case: seconds by model, because the members of a panel are asked at the same time."""

    seconds: dict[str, float] = field(default_factory=dict)
    usd: float = 0.0
    unpriced: bool = False


@dataclass(slots=True)
class _Counting(JudgeObserver):
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    invalid: int = 0
    repaired_answers: int = 0

    def attempted(self, attempt: JudgeAttempt) -> None:
        model, usage = attempt.model, attempt.usage
        self.requests += 1
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        effort = _CALL.get()
        effort.seconds[model] = effort.seconds.get(model, 0.0) + attempt.duration_s
        effort.usd += usage.cost_usd or 0.0
        effort.unpriced |= usage.cost_usd is None and attempt.completion is not None

    def repaired(self, model: str, *, requested: int, answered: int) -> None:  # noqa: ARG002  # the observer's signature
        self.invalid += requested
        self.repaired_answers += answered


def judges(settings: JudgeSettings) -> dict[str, JudgeSettings]:
    """Each configured model alone, and each panel. All share the default judge's budget."""
    found: dict[str, JudgeSettings] = {}
    of_all = ("redact", "redact_patterns", "budget_usd_per_hour", "budget_usd_per_day")
    common = {"cache_entries": 0, **{name: getattr(settings.section, name) for name in of_all}}
    for name, each in {DEFAULT_JUDGE: settings, **settings.others}.items():
        own = replace(each, others={}, section=each.section.model_copy(update=common))
        for model in each.models:
            alone = replace(own, models=(model,))
            known = found.setdefault(model.name, alone)
            if known.models != alone.models:  # the same name at another address
                found[f"{model.name} of {name}"] = alone
        if len(each.models) > 1:
            found[f"panel {name}"] = own
    return found


async def try_judge(
    name: str,
    settings: JudgeSettings,
    cases: Sequence[GoldenCase],
    *,
    client: Client,
    memory: JudgeStorage,
    repeats: int,
    min_accuracy: float = MIN_ACCURACY,
    done: Callable[[int], None] = lambda _: None,
) -> JudgeReport:
    """Ask one judge all questions, each case's together, and report the result.

    Args:
        name: of the judge, for the report.
        settings: one of ``judges``; its budget holds for what ``memory`` remembers too.
        cases: of the golden set.
        client: sends the requests.
        memory: what was spent, shared by the judges of one run.
        repeats: how often everything is asked; more than once shows how stable the answers are.
        min_accuracy: see ``judge_report``.
        done: is called with the number of questions after each case.
    """
    observer = _Counting()
    backend = JudgeBackend(settings, client=client, memory=memory, observer=observer)
    slots = asyncio.Semaphore(settings.section.concurrency)
    efforts: list[_CaseEffort] = []

    async def ask(golden: GoldenCase) -> Mapping[Question, Reply]:
        async with slots:
            effort = _CaseEffort()
            _CALL.set(effort)
            replies = await backend.answer(golden.case, [each.question for each in golden.questions])
        if effort.seconds:
            efforts.append(effort)
        done(len(golden.questions))
        return replies

    given: dict[str, list[Given]] = {each.name: [] for golden in cases for each in golden.questions}
    for _ in range(repeats):
        for golden, replies in zip(cases, await asyncio.gather(*map(ask, cases)), strict=True):
            for each in golden.questions:
                given[each.name].append(_given(each, replies))
    panel = len(settings.models) > 1
    counted = Effort(
        requests=observer.requests,
        input_tokens=observer.input_tokens,
        output_tokens=observer.output_tokens,
        # Members of a panel are asked again one by one: the sum is about none of the answers that are compared here.
        invalid=0 if panel else observer.invalid,
        repaired=0 if panel else observer.repaired_answers,
        seconds=tuple(max(each.seconds.values()) for each in efforts),
        usd=tuple(each.usd for each in efforts if not each.unpriced),
        unpriced=sum(each.unpriced for each in efforts),
    )
    answers = [
        GoldenAnswer(question=each, given=tuple(given[each.name])) for golden in cases for each in golden.questions
    ]
    timeout_s = max(model.timeout_s for model in settings.models)
    return judge_report(name, answers, counted, cases=len(cases), timeout_s=timeout_s, min_accuracy=min_accuracy)


def _given(golden: GoldenQuestion, replies: Mapping[Question, Reply]) -> Given:
    reply = replies.get(golden.question)
    if isinstance(reply, Answer):
        return facts(reply.value)
    return reply.reason if reply is not None else "nobody was asked"


def golden_set() -> tuple[GoldenCase, ...]:
    """All shipped cases; each trap makes one more of its questions, so that no prompt shows a question twice."""
    found: list[GoldenCase] = []
    for file in sorted(files(__package__).joinpath("golden").iterdir(), key=lambda each: each.name):
        listed = read_document(file.read_text(encoding="utf-8"), None, file.name).value
        for one in listed if isinstance(listed, list) else ():
            found += _cases(one)
    return tuple(found)


def _cases(one: Any) -> Iterator[GoldenCase]:
    name, stated = str(one["id"]), one["questions"]
    plain = [_question(f"{name}.{number}", each) for number, each in enumerate(stated, 1)]
    yield _case(name, one["case"], plain)
    for trap in TRAPS:
        changed = [
            _question(f"{twin.name}/{trap}", {**each, **each[trap]}, trap=trap, twin=twin.name)
            for each, twin in zip(stated, plain, strict=True)
            if isinstance(each.get(trap), dict)
        ]
        if changed:
            yield _case(f"{name}/{trap}", one["case"], changed)
    for number, each in enumerate(one.get("traps", ()), 1):
        trap = each["trap"]
        about = f"{name}/{trap}-{number}"
        own = {"right": each["right"]} if "right" in each else {}
        changed = [
            _question(f"{twin.name}/{trap}-{number}", {**of_twin, **own}, trap=trap, twin=twin.name)
            for of_twin, twin in zip(stated, plain, strict=True)
        ]
        yield _case(about, {**one["case"], **each["change"]}, changed)


def _case(name: str, stated: JsonRecord, questions: Sequence[GoldenQuestion]) -> GoldenCase:
    return GoldenCase(case=case_of({**stated, "case_id": name}), questions=tuple(questions))


def _question(name: str, stated: JsonRecord, *, trap: Trap | None = None, twin: str | None = None) -> GoldenQuestion:
    given = {
        key: value for key, value in stated.items() if key != "right" and not (key in TRAPS and isinstance(value, dict))
    }
    right = stated["right"]
    return GoldenQuestion(
        name=name,
        question=question_of_json(given),
        right=right if isinstance(right, dict) else {"value": right},
        trap=trap,
        twin=twin,
    )


def labelled_cases(rubric: Rubric, examples: Iterable[JsonRecord]) -> tuple[GoldenCase, ...]:
    """The questions that a rubric asks a judge about its labelled examples; what is decided without one is left out.

    Args:
        rubric: the wording.
        examples: cases with what is expected of each metric, as ``ReadyRubric.examples``.

    Raises:
        ValueError: an example expects something of a metric that no answer to its question gives.
    """
    found: list[GoldenCase] = []
    for example in examples:
        case = case_of({key: value for key, value in example.items() if key != EXPECT})
        expected = example.get(EXPECT)
        questions = tuple(
            _labelled(rubric.id, case, criterion.metric, wanted)
            for criterion in rubric.criteria
            if criterion.metric.methods == (Method.JUDGE,)
            and isinstance(expected, dict)
            and (wanted := expected.get(criterion.metric.id)) is not None
        )
        if questions:
            found.append(GoldenCase(case=case, questions=questions))
    return tuple(found)


def _labelled(rubric: str, case: Case, metric: Metric, wanted: Json) -> GoldenQuestion:
    name, question = f"{rubric}.{case.case_id}.{metric.id}", _asked(case, metric)
    if question is None:
        raise ValueError(f"{name}: the case lacks what the question shows")
    right = _right(question, case, metric, wanted)
    if not right:
        raise ValueError(f"{name}: expect is {wanted!r}, which no answer to the question gives")
    return GoldenQuestion(name=name, question=question, right=right, label=f"{rubric}.{metric.id}")


def _asked(case: Case, metric: Metric) -> AskDeclared | None:
    begun = metric.start(case)
    question = next(begun)[0] if isinstance(begun, Generator) else None
    return question if isinstance(question, AskDeclared) else None


def _right(question: AskDeclared, case: Case, metric: Metric, wanted: Json) -> Expected:
    """The answers that lead to the expected value; empty if none does."""
    listed = [wanted, wanted] if isinstance(wanted, bool) else wanted if isinstance(wanted, list) else []
    ends = [float(each) for each in listed if isinstance(each, int | float)]
    if question.kind not in ("boolean", "one_of"):
        return {"count" if question.kind == "findings" else "value": ends} if ends else {}
    offered = (True, False) if question.kind == "boolean" else question.choices
    fitting = [each for each in offered if ends and ends[0] <= _valued(case, metric, each) <= ends[-1]]
    return {"value": fitting[0] if len(fitting) == 1 else fitting} if fitting else {}


def _valued(case: Case, metric: Metric, answer: object) -> float:
    """The value that an answer gives the metric."""
    begun = metric.start(case)
    try:
        if isinstance(begun, Generator):
            next(begun)
            begun.send((Answer(value=answer, method=Method.JUDGE, reason=""),))
    except StopIteration as ended:
        if isinstance(ended.value, Scored):
            return ended.value.value
    raise ValueError(f"{metric.id} gives no value to {answer!r}")
