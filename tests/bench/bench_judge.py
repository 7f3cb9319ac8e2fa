"""What batching saves: calls and dollars of a live judge for a thousand cases, asked in several ways.

    python tests/bench/bench_judge.py

Input: the golden cases of the call rubrics, and all golden cases. The judge is a provider on this machine that answers
exactly as asked, reached through litellm; tokens are a quarter of the characters, prices those of the model's list. The
baseline asks once a metric, as evaluators do that know nothing of each other's questions. No cache.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

from sidejudge.integrations.cases.lines import read_case
from sidejudge.integrations.judge.client import JudgeClient, JudgeModel
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config.evaluators import JudgeSection
from sidejudge.monitor.evaluate.judge.judge_backend import JudgeBackend
from sidejudge.monitor.evaluate.judge.panel import JudgeSettings
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.questions.question import Answer, PendingMetrics, Question, Reply
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.rubric import Rubric
from tests.fakes.judge import judges
from tests.fakes.openai import Provider

MODEL = "openai/gpt-4o-mini"
CALLS = ("qa", "entity", "text", "translation")
GOLDEN = Path(__file__).parents[1] / "golden" / "cases"
WAYS = ("a call a question", "a call a metric", "a call a round", "lexical first, a call a round")


def stories(rubrics: Sequence[str]) -> list[tuple[Rubric, Case]]:
    found = []
    for name in rubrics:
        for path in sorted((GOLDEN / name).glob("*.yaml")):
            reported = yaml.safe_load(path.read_text(encoding="utf-8"))["case"]
            found.append((RUBRICS[name], read_case(json.dumps({"case_id": path.stem, **reported}), 1)))
    return found


async def hear(judge: JudgeBackend, case: Case, questions: Sequence[Question], way: str) -> dict[Question, Reply]:
    known = {question: lexical.answer(case, question) for question in questions}
    first = way.startswith("lexical")
    left = [q for q in questions if judge.can_answer(q) and not (first and isinstance(known[q], Answer))]
    for requested in [[q] for q in left] if way == "a call a question" else [left]:
        known |= await judge.answer(case, requested)
    return known


async def score(judge: JudgeBackend, rubric: Rubric, case: Case, way: str) -> None:
    started = {criterion.metric.id: criterion.metric.start(case) for criterion in rubric.criteria}
    apart = way in {"a call a question", "a call a metric"}
    for evaluation in [PendingMetrics({n: s}) for n, s in started.items()] if apart else [PendingMetrics(started)]:
        while questions := evaluation.questions:
            evaluation.give(await hear(judge, case, questions, way))


async def main() -> None:
    library = LiteLLM()
    console = Console()
    with Provider(judges()) as provider, tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "s.sqlite")
        model = JudgeModel(name=MODEL, api_base=provider.url, api_key="none")
        for title, rubrics in (("call rubrics", CALLS), ("all rubrics", tuple(RUBRICS))):
            cases = stories(rubrics)
            table = Table("way", "calls", "of which failed", "US$", "of the baseline", box=None)
            rows: dict[str, tuple[int, int, float]] = {}
            for way in WAYS:
                seen = Counted()
                settings = JudgeSettings(section=JudgeSection(model=MODEL, cache_entries=0), models=(model,))
                judge = JudgeBackend(settings, client=JudgeClient(library), memory=store.judged, observer=seen)
                for rubric, case in cases:
                    await score(judge, rubric, case, way)
                rows[way] = seen.calls, sum(seen.failures.values()), seen.usd
            for way, (calls, failed, usd) in rows.items():
                thousand = 1000 / len(cases)
                share = usd / rows["a call a metric"][2]
                table.add_row(
                    way,
                    f"{calls * thousand:.0f}",
                    f"{failed * thousand:.0f}",
                    f"{usd * thousand:.3f}",
                    f"{share:.2f} ×",
                )
            console.print(f"{title}: {len(cases)} golden cases, for 1000 such, {MODEL}")
            console.print(table)
        store.close()
    await library.close()


class Counted:
    """Counts calls and dollars."""

    def __init__(self) -> None:
        self.calls = 0
        self.usd = 0.0
        self.failures: Counter[str] = Counter()

    def judging(self, case) -> None: ...
    def asking(self, questions) -> None: ...
    def attempted(self, attempt) -> None:
        self.calls += 1
        self.usd += attempt.usage.cost_usd or 0.0
        if attempt.failure is not None:
            self.failures[str(attempt.failure)] += 1

    def repaired(self, model, *, requested, answered) -> None: ...
    def looked_up(self, *, hits, misses) -> None: ...
    def flagged(self, model, flag) -> None: ...


if __name__ == "__main__":
    asyncio.run(main())
