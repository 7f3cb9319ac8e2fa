"""Drift watch: a fixed sample of past prompts is sent to the judge again every day, within its budget.

Each kept prompt has its own name in the store, with the id of its trace, so that forgetting the trace erases it. None
is held in memory between two rounds.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.part import TextsByName
from sidejudge.monitor.config.evaluators import DriftSection
from sidejudge.monitor.evaluate.stages import user_digest
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.judging.drift import far, measures
from sidejudge.scoring.judging.request import JudgeRequest
from sidejudge.scoring.questions.kinds import question_json, question_of_json
from sidejudge.scoring.questions.question import Question
from sidejudge.scoring.result.reason import Rights
from sidejudge.scoring.statistics.judge_drift import Answered, JudgeDrift, drifts
from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.trace.time_units import DAY_NS, MINUTE_NS

from .answer_cache import CachedAnswer
from .panel_member import UnansweredError

if TYPE_CHECKING:
    from .judge_backend import JudgeBackend

log = logging.getLogger("sidejudge.judge")

SPACING_NS: Final = 10 * MINUTE_NS
"""Between two prompts that are taken into the sample: it is to show more than one moment."""
MAX_BYTES: Final = 65_536
"""A longer prompt is not taken."""
_PROMISE_DAYS: Final = 30
_PROMPT, _LATEST = "prompt/", "latest"
_ENOUGH: Final = 0.5
"""Share of the sample that must be answered for a conclusion."""


_REMEMBERED: Final = 0.9
"""Each round keeps this share of the earlier knowledge about a quiet judge: some ten rounds count."""
_Pair: TypeAlias = tuple[Mapping[str, Answered], Mapping[str, Answered]]
"""Measures of one prompt, before and now."""


class DriftWatch:
    """Keeps the sample and compares. ``latest`` is the result of the last round."""

    def __init__(self, memory: TextsByName, *, section: DriftSection, clock_ns: Callable[[], int]) -> None:
        self._memory, self._section, self._clock_ns = memory, section, clock_ns
        self._known: dict[str, int] = {}
        self._new: dict[str, str] = {}
        self._writing: asyncio.Task[None] | None = None
        self._last_ns = self._taken_ns = 0
        self._quiet: dict[str, tuple[float, float]] = {}
        self.latest: tuple[JudgeDrift, ...] = ()

    def restore(self) -> None:
        """Restore the last run's state."""
        kept = self._memory.all()
        self._known = {name: json.loads(text)["taken_ns"] for name, text in kept.items() if name.startswith(_PROMPT)}
        latest = json.loads(kept.get(_LATEST, "{}"))
        self._last_ns = int(latest.get("at_ns", 0))
        self.latest = tuple(JudgeDrift(**each) for each in latest.get("drifts", ()))
        self._quiet = {metric: (changed, n) for metric, (changed, n) in latest.get("quiet", {}).items()}

    def take(self, case: Case, judge: str, request: JudgeRequest, answers: Mapping[Question, object]) -> None:
        """Take a prompt and its answers into the sample while there is room; called with each answered prompt."""
        now_ns = self._clock_ns()
        if len(self._known) >= self._section.prompts or abs(now_ns - self._taken_ns) < SPACING_NS:
            return
        if sum(len(message["content"]) for message in request.messages) > MAX_BYTES:
            return
        before: dict[str, Answered] = {}
        for question, answer in answers.items():
            if not isinstance(answer, CachedAnswer):
                return
            before |= _numbered(request, question, answer.value)
        if not before:
            return
        name = f"{_PROMPT}{now_ns}"
        self._taken_ns = self._known[name] = now_ns
        self._new[name] = json.dumps({
            "trace_id": case.trace_id or case.case_id, "session_id": case.session_id,
            "user": None if case.user_id is None else user_digest(case.user_id),
            "taken_ns": now_ns, "judge": judge, "before": before,
            "request": {
                "messages": [dict(each) for each in request.messages], "schema": dict(request.schema),
                "schema_name": request.schema_name, "prompt_version": request.prompt_version, "ids": request.ids,
                "questions": [question_json(each) for each in request.questions],
                "prompt_tokens": request.prompt_tokens, "answer_tokens": request.answer_tokens,
            },
        })  # fmt: skip
        self._writing = asyncio.create_task(self._write_now())

    async def _write_now(self) -> None:
        """Write at once: what is forgotten while it is in memory alone would be written all the same."""
        with suppress(StoreError):  # the next round tries it again
            await self._write()

    async def round(self, judge: JudgeBackend) -> None:
        """Write new prompts, and once a day send the sample to the judge again. An error of the store ends a round."""
        now_ns = self._clock_ns()
        try:
            await self._write()
            if abs(now_ns - self._last_ns) < DAY_NS or not self._known:  # a time to come: the clock was set back
                return
            # First: a process that dies of the round does not pay for it again at each start.
            self._last_ns = now_ns
            await self._remember()
            await self._compare(judge, now_ns)
            await self._remember()
        except StoreError as error:
            log.warning("could not look for drift of the judge", extra={"cause": str(error)})

    async def _compare(self, judge: JudgeBackend, now_ns: int) -> None:
        kept = await asyncio.to_thread(self._memory.all)
        sample = {name: json.loads(text) for name, text in kept.items() if name.startswith(_PROMPT)}
        gone = [name for name, each in sample.items() if now_ns - each["taken_ns"] > self._section.keep.ns]
        pairs: list[_Pair] = []
        bounds: dict[str, float] = {}
        for name, each in sample.items():
            if name in gone:
                continue
            try:
                request = _request(each["request"])
                answers = await judge.repeat(each["judge"], request)
            except (ValueError, KeyError, TypeError):  # written by another version
                gone.append(name)
                continue
            except UnansweredError as error:
                why = error.kind or error.reason.shown(Rights.NAMES)  # the provider's own words may quote the prompt
                log.info("a prompt was not answered again", extra={"cause": str(why)})
                continue
            if answers is None:
                gone.append(name)
                continue
            now: dict[str, Answered] = {}
            for question, answer in answers.items():
                if isinstance(answer, CachedAnswer):
                    now |= _numbered(request, question, answer.value)
                    bounds |= far(question, answer.value)
            pairs.append((each["before"], now))
        await self._memory.change(dict.fromkeys(gone))
        self._known = {name: each["taken_ns"] for name, each in sample.items() if name not in gone}
        if len(pairs) >= _ENOUGH * len(self._known):
            found = drifts(_by_prompt(pairs), self._section.error / _PROMISE_DAYS, far=bounds, quiet=self._quiet)
            self.latest = tuple(found)
            self._learn(found)

    def _learn(self, found: Sequence[JudgeDrift]) -> None:
        """Learn how many answers of a judge differ without a drift."""
        for each in found:
            if not each.moved:
                changed, n = self._quiet.get(each.metric, (0.0, 0.0))
                self._quiet[each.metric] = (_REMEMBERED * changed + each.changed, _REMEMBERED * n + each.n)

    async def _write(self) -> None:
        new, self._new = self._new, {}
        try:
            await self._memory.change(new)
        except BaseException:
            self._new = {**new, **self._new}
            raise

    async def _remember(self) -> None:
        drifts_now = [each.to_json() for each in self.latest]
        stated = {"at_ns": self._last_ns, "drifts": drifts_now, "quiet": self._quiet}
        await self._memory.change({_LATEST: json.dumps(stated)})


def _numbered(request: JudgeRequest, question: Question, value: object) -> dict[str, Answered]:
    """The measures of an answer, each named after its question's place in the prompt."""
    place = request.questions.index(question)
    return {f"{place}/{name}": number for name, number in measures(question, value).items()}


def _by_prompt(pairs: Sequence[_Pair]) -> Sequence[_Pair]:
    """One pair a prompt and measure, of all its questions together: answers to one prompt are not independent.

    Numbers are added up, and categories listed.
    """
    found: list[_Pair] = []
    for before, now in pairs:
        sums: tuple[dict[str, Answered], dict[str, Answered]] = ({}, {})
        for name in sorted(before.keys() & now.keys()):
            metric = name.partition("/")[2]
            for side, given in zip(sums, (before, now), strict=True):
                known, value = side.get(metric), given[name]
                if isinstance(value, str):
                    side[metric] = value if known is None else f"{known}, {value}"
                else:
                    side[metric] = value + known if isinstance(known, int | float) else value
        found.append(sums)
    return found


def _request(stated: JsonRecord) -> JudgeRequest:
    questions = tuple(question_of_json(each) for each in stated["questions"])
    return JudgeRequest(
        messages=tuple(stated["messages"]), schema=stated["schema"], schema_name=stated["schema_name"],
        prompt_version=stated["prompt_version"], questions=questions, ids=tuple(stated["ids"]),
        prompt_tokens=stated["prompt_tokens"], answer_tokens=stated["answer_tokens"],
    )  # fmt: skip
