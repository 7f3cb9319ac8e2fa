"""Judge backend: questions about a case in, answers of a judge with reason and cost out.

The cache answers first. The rest goes out in as few requests as fit the judge's context, each to every panel member. It
never raises: a failure is a failed ``NoAnswer`` with its reason, never a number.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from sidejudge.integrations.judge.client import JudgeModel
from sidejudge.integrations.provider.attempt import JudgeObserver
from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind
from sidejudge.integrations.store.contents import JudgeCallTable
from sidejudge.integrations.store.errors import StoreError
from sidejudge.monitor.config.evaluators import JudgeSection, Priority
from sidejudge.monitor.config.section import DEFAULT_JUDGE
from sidejudge.monitor.evaluate.backends import ATTEMPTS, FILTERED, OUTAGE, Addressed, JudgeAccount, plain
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.checks.redaction import redaction_of
from sidejudge.scoring.judging.check import contradiction
from sidejudge.scoring.judging.layout import Outline
from sidejudge.scoring.judging.request import JudgeRequest, cache_key, can_judge, can_permute, requests, spare_parts
from sidejudge.scoring.lexical.shown_text import MAX_REASON, label
from sidejudge.scoring.questions.kinds import CANNOT_TELL, AskDeclared, ReachedGoal
from sidejudge.scoring.questions.question import Answer, NoAnswer, Question, Reply
from sidejudge.scoring.result.reason import Reason, cut, own, quoted
from sidejudge.scoring.result.result import Judgement, Method
from sidejudge.scoring.status.snapshots import JudgeModelSnapshot
from sidejudge.scoring.trace.time_units import iso_time
from sidejudge.scoring.verdict.review_reason import LEFT_OUT, OUTLINED

from .answer_cache import Cache, CachedAnswer, CacheStorage, key
from .bill import JudgeBill, with_cost
from .breaker import CONSECUTIVE, Breaker
from .budget import HOUR_S, JudgeBudget
from .call_record import record_of
from .panel import JudgePanel, JudgeSettings
from .panel_member import Client, PanelMember, UnansweredError
from .rate_limits import RateLimits

log = logging.getLogger("sidejudge.judge")

_TRACE_ID: Final = re.compile("[0-9a-f]{32}")
_WORSE: Final = ("closed", "half_open", "open")
REDACTED: Final = "redacted"
"""Flag of an answer that was given without the personal data of the case."""


OnAnswered: TypeAlias = Callable[[Case, str, JudgeRequest, Mapping[Question, object]], None]
"""Is called with each answered request, the identity of its judge, and the answers."""


class JudgeStorage(CacheStorage[str], Protocol):
    """The part of the store that a judge uses: answers, and dollars spent by the hour."""

    async def spend(self, hour_s: int, usd: float) -> None: ...
    def spent_since(self, since_s: int) -> dict[int, float]: ...


@dataclass(frozen=True, slots=True)
class _Asked:
    """What all requests about some questions share: their case, judge, the cache's keys, and who pays."""

    case: Case
    panel: JudgePanel
    keys: Mapping[Question, str]
    bill: JudgeBill


class JudgeBackend:
    """All judges as one backend, in one event loop. Creating it reads the spending and sends nothing.

    A question goes to the judge that it is addressed to, any other to the default one.
    """

    def __init__(
        self,
        settings: JudgeSettings,
        *,
        client: Client,
        memory: JudgeStorage,
        observer: JudgeObserver | None = None,
        calls: JudgeCallTable | None = None,
        on_answered: OnAnswered | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        section = self._section = settings.section
        self._caches = bool(section.cache_entries)
        self._redaction = redaction_of(section.redact, section.redact_patterns)
        self._client = client
        self._memory = memory
        self._observer = observer or JudgeObserver()
        self._clock_ns = clock_ns
        self._calls = calls
        self._on_answered = on_answered
        self._cache = Cache(
            memory, CachedAnswer.from_json, entries=section.cache_entries, clock_ns=clock_ns,
            log=log, what="judged answers", again="the judge is asked again",
        )  # fmt: skip
        self.budget: Final = JudgeBudget(
            per_hour=section.budget_usd_per_hour,
            per_day=section.budget_usd_per_day,
            spent=memory.spent_since(0),
        )
        self._jitter = jitter
        self._limits: dict[tuple[object, ...], RateLimits] = {}
        self._members: dict[JudgeModel, PanelMember] = {}
        self._panel = self._panel_of(settings)
        self._others = {name: self._panel_of(other) for name, other in settings.others.items()}
        self.name: Final = self._panel.name
        """The model or the panel, as verdicts name it."""
        self._context_tokens: dict[str, int] = {}
        self._under_way: dict[str, asyncio.Event] = {}

    def _panel_of(self, settings: JudgeSettings) -> JudgePanel:
        members = [self._member(model, settings.section) for model in settings.models]
        return JudgePanel(members, settings.section, self._observer)

    def _member(self, model: JudgeModel, section: JudgeSection) -> PanelMember:
        """A model's one member, shared by all judges that use it. Members of one provider share its limits."""
        if model not in self._members:
            limits = (section.concurrency, section.requests_per_minute, section.tokens_per_minute)
            place = (model.provider, model.api_base, *limits)
            if place not in self._limits:
                self._limits[place] = RateLimits(*limits, clock=time.monotonic)
            self._members[model] = PanelMember(
                model=model,
                client=self._client,
                limits=self._limits[place],
                budget=self.budget,
                remember=self._remember,
                observer=self._observer,
                retries=section.retries,
                clock=self._clock,
                jitter=self._jitter,
                breaker=Breaker(self._clock(), model=model.name, consecutive=_in_a_row(section.retries)),
            )
        return self._members[model]

    def _clock(self) -> float:
        return self._clock_ns() / 1e9

    def can_answer(self, question: Question) -> bool:
        """Whether a judge can be asked this question."""
        return can_judge(plain(question))

    def states(self) -> dict[str, JudgeModelSnapshot]:
        """The circuit breaker of each model; of several under one name, as at two addresses, the one that is worst."""
        found: dict[str, JudgeModelSnapshot] = {}
        for panel in self._panels:
            for name, state in panel.states().items():
                found[name] = max(found.get(name, state), state, key=lambda each: _WORSE.index(each.circuit))
        return found

    @property
    def estimating(self) -> frozenset[str]:
        """The models that give no account of their tokens, so that their cost is estimated."""
        return frozenset().union(*(panel.estimating for panel in self._panels))

    @property
    def unpriced(self) -> frozenset[str]:
        """The models without a known price; their cost is unknown too."""
        return frozenset().union(*(panel.unpriced for panel in self._panels))

    @property
    def outage(self) -> str | None:
        """Why no answer is possible now, or None. One unavailable panel defers every trace that needs a judge."""
        return next((panel.outage for panel in self._panels if panel.outage is not None), None)

    @property
    def reachable(self) -> bool:
        """Whether one panel at least can answer now."""
        return any(panel.outage is None for panel in self._panels)

    @property
    def outage_cause(self) -> str | None:
        """``outage`` in the provider's own words, which may quote a trace: for the operator of a run alone."""
        return next((panel.cause or panel.outage for panel in self._panels if panel.outage is not None), None)

    @property
    def _panels(self) -> tuple[JudgePanel, ...]:
        return (self._panel, *self._others.values())

    def share(self, priority: Priority) -> float:
        """Count a case that needs the judge; the share in [0, 1] of such cases that the budget pays for."""
        return self.budget.arrive(priority, self._clock())

    async def answer(
        self, case: Case, questions: Sequence[Question], account: JudgeAccount | None = None
    ) -> Mapping[Question, Reply]:
        """Replies to the questions that a judge can answer; the others are omitted.

        Args:
            case: the case that the questions are about.
            questions: of one round.
            account: the cost record of the case, shared by its rounds; None: a new one.
        """
        account = account or JudgeAccount()
        requested = tuple(filter(self.can_answer, dict.fromkeys(questions)))
        self._observer.judging(case)
        bill = JudgeBill()
        replies: Mapping[Question, Reply] = {}
        try:
            replies = await self._answer(case, requested, bill, account.run) if requested else {}
        except ProviderError as error:
            return dict.fromkeys(
                requested,
                NoAnswer(Reason("{outage}: {error}", outage=own(OUTAGE), error=quoted(str(error))), failed=True),
            )
        except Exception as error:  # noqa: BLE001  # a bug costs one case its answers; its text may quote a trace
            log.error("could not judge", extra={"cause": type(error).__name__})  # noqa: TRY400  # the same
            paid = bill.judgement(self.name, "", uuid.uuid4().hex)
            return dict.fromkeys(
                requested,
                NoAnswer(Reason("judge error: {kind}", kind=own(type(error).__name__)), failed=True, judgement=paid),
            )
        finally:
            # An outage costs nothing and is no sample of what judging costs.
            if bill.usd or any(isinstance(reply, Answer) for reply in replies.values()):
                self.budget.judged(account.priority, bill.usd, again=account.counted)
                account.counted = True
        return replies

    async def _answer(
        self, case: Case, requested: Sequence[Question], bill: JudgeBill, run: int | None
    ) -> Mapping[Question, Reply]:
        for panel in {self._panel_for(question) for question in requested}:
            if panel.outline:
                await self._context(panel)  # part of the key
        keys = await asyncio.to_thread(self._keys, case, requested, run)
        replies = await self._cached(case, requested, keys)
        self._observer.looked_up(hits=len(replies), misses=len(requested) - len(replies))
        left = [question for question in requested if question not in replies]
        # A question that another case is asking right now, about the same content, waits for that answer.
        shared = self._under_way if self._caches else {}
        others = {question: shared[keys[question]] for question in left if keys[question] in shared}
        own = [question for question in left if question not in others]
        done = asyncio.Event()
        self._under_way |= {keys[question]: done for question in own}
        try:
            if own:
                replies |= await self._ask_all(case, own, keys, bill)
        finally:
            for question in own:
                self._under_way.pop(keys[question], None)
            done.set()
        if others:
            await asyncio.gather(*(each.wait() for each in dict.fromkeys(others.values())))
            replies |= await self._cached(case, list(others), keys)
            if unanswered := [question for question in others if question not in replies]:
                replies |= await self._ask_all(case, unanswered, keys, bill)
        return replies

    def _keys(self, case: Case, requested: Sequence[Question], run: int | None) -> dict[Question, str]:
        """The cache's keys. If another order gives the same prompt, it shares the first order's answer."""
        keys: dict[Question, str] = {}
        for (judge, permuted), asked in _by_judge(requested).items():
            mark = "permuted\0" if permuted and can_permute(list(asked)) else ""
            mark += "" if run is None else f"run {run}\0"
            mark += repr(self._redaction)  # what the judge does not see, it cannot have answered by
            panel = self._others.get(judge, self._panel)
            if panel.outline:  # what is shown of a run depends on what fits
                mark += f"outline {panel.context_tokens or self._context_tokens.get(panel.name)}\0"
            keys |= {q: key(panel.identity, mark + cache_key(case, each)) for each, q in asked.items()}
        return keys

    async def _cached(
        self, case: Case, questions: Sequence[Question], keys: Mapping[Question, str]
    ) -> dict[Question, Reply]:
        known = await self._cache.get([keys[question] for question in questions])
        replies: dict[Question, Reply] = {}
        for question in questions:
            if (kept := known.get(keys[question])) is not None:
                judgement = Judgement(self._panel_for(question).name, kept.prompt_version)
                replies[question] = await self._reply(case, plain(question), kept, judgement)
        return replies

    async def _ask_all(
        self, case: Case, questions: Sequence[Question], keys: Mapping[Question, str], bill: JudgeBill
    ) -> dict[Question, Reply]:
        """Send the questions to their judges, in as few requests as fit."""

        async def ask(judge: str, asked: Mapping[Question, Question], *, permuted: bool) -> dict[Question, Reply]:
            panel = self._others.get(judge, self._panel)
            context_tokens = await self._context(panel)
            made, refused = await asyncio.to_thread(
                requests, case, list(asked), context_tokens=context_tokens, permuted=permuted, outline=panel.outline
            )
            these = _Asked(case, panel, {each: keys[question] for each, question in asked.items()}, bill)
            found = {**refused, **await _together(self._ask(these, each) for each in made)}
            return {question: found[each] for each, question in asked.items()}

        return await _together(ask(judge, of, permuted=other) for (judge, other), of in _by_judge(questions).items())

    def _panel_for(self, question: Question) -> JudgePanel:
        return self._others.get(_judge_of(question), self._panel)

    async def _ask(self, asked: _Asked, request: JudgeRequest, left_out: Collection[str] = ()) -> dict[Question, Reply]:
        """Send one request to every panel member and combine their answers; ``left_out``: parts that it lacks."""
        panel, call, own = asked.panel, uuid.uuid4().hex, JudgeBill()
        sent, redacted = self._redacted(request)
        answers: Mapping[Question, CachedAnswer | NoAnswer] = {}
        try:
            answers = await panel.ask(sent, own)
        except UnansweredError as error:
            paid = own.judgement(panel.name, request.prompt_version, call)
            failed = NoAnswer(cut(error.reason, MAX_REASON), failed=True, judgement=paid)
            smaller: dict[Question, Reply] = {}
            divides = len(request.questions) > 1 or (panel.outline and request.outline is None)
            if divides and error.kind is ProviderErrorKind.CONTEXT_OVERFLOW:
                smaller = await self._ask_apart(asked, request)
            if error.kind is ProviderErrorKind.CONTENT_REFUSED:
                failed = NoAnswer(_filtered(error), judgement=paid, final=True)
                smaller = await self._ask_less(asked, request, left_out)
            if all(question in smaller for question in request.questions):  # else the failed ones carry its cost
                smaller = with_cost(smaller, paid)
            return {question: smaller.get(question, failed) for question in request.questions}
        finally:
            asked.bill.take(own)
            await self._keep(asked.case, call, sent, own, answers)
        if self._on_answered is not None:
            self._on_answered(asked.case, panel.identity, sent, answers)
        notes = (*((REDACTED,) if redacted else ()), *((LEFT_OUT,) if left_out else ()))
        answers = {question: _noted(answer, notes, request.outline) for question, answer in answers.items()}
        replies: dict[Question, Reply] = {}
        for question, answer in answers.items():
            if isinstance(answer, NoAnswer):
                replies[question] = replace(answer, judgement=own.judgement(panel.name, request.prompt_version, call))
            else:
                judgement = own.judgement(panel.name, answer.prompt_version, call) or Judgement(
                    panel.name, answer.prompt_version
                )
                replies[question] = await self._reply(asked.case, question, answer, judgement)
        kept = {asked.keys[q]: each.to_json() for q, each in answers.items() if isinstance(each, CachedAnswer)}
        await self._cache.put(kept)
        return replies

    async def repeat(self, judge: str, request: JudgeRequest) -> Mapping[Question, CachedAnswer | NoAnswer] | None:
        """Send a request once more, past the cache; budget and limits are kept.

        Args:
            judge: the identity of the model or panel, as ``on_answered`` got it.
            request: as it was sent.

        Returns:
            The answers; None where there is no such judge any more.

        Raises:
            UnansweredError: it was not answered, or the budget is spent.
        """
        panel = next((each for each in self._panels if each.identity == judge), None)
        return None if panel is None else await panel.ask(request, JudgeBill())

    async def _keep(
        self, case: Case, call: str, request: JudgeRequest, bill: JudgeBill,
        answers: Mapping[Question, CachedAnswer | NoAnswer],
    ) -> None:  # fmt: skip
        """Keep prompt and answer, where that is configured. A failing store only loses the record."""
        identity, most_bytes = case.trace_id or case.case_id, self._section.keep_calls_bytes
        if self._calls is None or most_bytes is None or not bill.exchanges or _TRACE_ID.fullmatch(identity) is None:
            return
        now_ns = self._clock_ns()
        body = record_of(request, bill.exchanges, answers, self._redaction)
        try:
            await self._calls.put(
                call,
                bytes.fromhex(identity),
                {"call": call, "at": iso_time(now_ns), "cost_usd": bill.usd if bill.complete else None, **body},
                at_ns=now_ns,
                before_ns=now_ns - self._section.keep_calls.ns,
                most_bytes=most_bytes,
            )
        except StoreError as error:
            log.warning("could not keep a call to a judge", extra={"cause": str(error)})

    def _redacted(self, request: JudgeRequest) -> tuple[JudgeRequest, int]:
        """The request without personal data and keys, as configured, and how many were replaced."""
        redaction = self._redaction
        if redaction is None:
            return request, 0
        messages: list[Mapping[str, str]] = []
        replaced = 0
        for message in request.messages:
            text, count = redaction.apply(message["content"])
            messages.append({**message, "content": text})
            replaced += count
        return replace(request, messages=tuple(messages)), replaced

    async def _ask_apart(self, asked: _Asked, request: JudgeRequest) -> dict[Question, Reply]:
        """Send the questions of a request that was too long, as far as they fit into requests of half its length."""
        half = (request.prompt_tokens + request.answer_tokens) // 2
        made, _ = await asyncio.to_thread(
            requests, asked.case, request.questions[::-1] if request.permuted else request.questions,
            context_tokens=half, permuted=request.permuted, outline=asked.panel.outline,
        )  # fmt: skip
        return await _together(self._ask(asked, each) for each in made)

    async def _ask_less(self, asked: _Asked, request: JudgeRequest, left_out: Collection[str]) -> dict[Question, Reply]:
        """Repeat questions that a filter stopped: first without spare parts, then each question by itself."""
        spare = spare_parts(asked.case, request.questions)
        groups: list[Sequence[Question]] = [request.questions]
        if left_out or not spare:
            spare, groups = frozenset(left_out), [[each] for each in request.questions]
            if len(groups) == 1:
                return {}
        replies: dict[Question, Reply] = {}
        context_tokens = await self._context(asked.panel)
        for group in groups:
            made, _ = await asyncio.to_thread(
                requests, asked.case, group[::-1] if request.permuted else group,
                context_tokens=context_tokens, permuted=request.permuted, left_out=spare,
            )  # fmt: skip
            for each in made:
                replies |= await self._ask(asked, each, spare)
        return replies

    async def _reply(self, case: Case, question: Question, kept: CachedAnswer, judgement: Judgement) -> Reply:
        if isinstance(question, AskDeclared | ReachedGoal) and kept.value == CANNOT_TELL:
            undecided = Reason("cannot tell: {why}", why=quoted(label(kept.reason, MAX_REASON)))
            return NoAnswer(undecided, judgement=judgement, final=True)
        found = await asyncio.to_thread(contradiction, case, question, kept.value)
        if found is not None:
            self._observer.flagged(judgement.model, "contradiction")
        flags = (*judgement.flags, *kept.flags, *(() if found is None else (label(found, MAX_REASON),)))
        judgement = replace(judgement, flags=flags, votes=kept.votes, dissent=kept.dissent, certainty=kept.certainty)
        return Answer(value=kept.value, method=Method.JUDGE, reason=kept.reason, judgement=judgement)

    async def _context(self, panel: JudgePanel) -> int:
        """Tokens that every model of a panel takes at once: as configured, else the least that is known of them."""
        if panel.context_tokens is not None:
            return panel.context_tokens
        if panel.name not in self._context_tokens:
            known = [await self._client.context_tokens(model) for model in panel.models]
            self._context_tokens[panel.name] = min(known)
        return self._context_tokens[panel.name]

    async def _remember(self, usd: float, now: float) -> None:
        try:
            await self._memory.spend(int(now // HOUR_S) * HOUR_S, usd)
        except StoreError as error:
            log.warning("could not record the cost of judging; it is lost with a restart", extra={"cause": str(error)})


async def _together(asked: Iterable[Awaitable[dict[Question, Reply]]]) -> dict[Question, Reply]:
    """The replies to requests that are sent at the same time."""
    return {question: reply for replies in await asyncio.gather(*asked) for question, reply in replies.items()}


def _filtered(error: UnansweredError) -> Reason:
    return Reason("{filtered}: {error}", filtered=own(FILTERED), error=quoted(label(str(error), MAX_REASON)))


def _in_a_row(retries: int) -> int:
    """Failures in a row that are an outage: more than one request can have, and no more than one trace can.

    So a trace without successors is not given up before the judge's outage is known.
    """
    return max(min(CONSECUTIVE, ATTEMPTS * (retries + 1)), retries + 2)


def _noted(answer: CachedAnswer | NoAnswer, notes: tuple[str, ...], outline: Outline | None) -> CachedAnswer | NoAnswer:
    """An answer, also from the cache, with flags for the parts that the judge was not shown."""
    if isinstance(answer, NoAnswer):
        return answer
    if outline is None:
        return replace(answer, flags=(*answer.flags, *notes)) if notes else answer
    value = answer.value
    if isinstance(value, Mapping) and "turns" in value:
        value = {**value, "turns": []}  # a number of a step is none of a turn
    by = f"{OUTLINED}{outline.extent}"
    return replace(answer, value=value, reason=f"{by}: {answer.reason}", flags=(*answer.flags, *notes, by))


def _judge_of(question: Question) -> str:
    """The judge that is asked; one that was not configured when the process began is the default one."""
    return question.judge if isinstance(question, Addressed) else DEFAULT_JUDGE


def _by_judge(questions: Iterable[Question]) -> dict[tuple[str, bool], dict[Question, Question]]:
    """By judge, and whether in another order: the questions as they were given, by the question itself."""
    found: dict[tuple[str, bool], dict[Question, Question]] = {}
    for question in questions:
        permuted = isinstance(question, Addressed) and question.permuted
        found.setdefault((_judge_of(question), permuted), {})[plain(question)] = question
    return found
