"""Panel member: one request to one model in, its answers question by question out.

An attempt passes the provider's rate limits, then the circuit breaker and the budget. After an outage a health probe,
not a case, checks whether the provider is back: a case that it never answers delays no other. Nor does one that a
firewall in between refuses as if the key or the model were wrong: the probe is answered then. A temporary failure is
retried after a pause. Attempts and pauses are bounded one by one; a wait for the limits or the budget is none of the
provider's time. Questions without a valid answer are asked once more, with the parser's complaint (seed 002: with
identical inputs), and then have none. There is no default answer.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from sidejudge.integrations.judge.batch import BatchJudgeClient
from sidejudge.integrations.judge.client import JudgeClient, JudgeModel, TokenPrice
from sidejudge.integrations.provider.attempt import Completion, JudgeAttempt, JudgeObserver
from sidejudge.integrations.provider.errors import OF_CONTENTS, ProviderError, ProviderErrorKind, ProviderUsage
from sidejudge.monitor.evaluate.backends import OUTAGE, OVER_BUDGET
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.judging.answers import AnswerReading
from sidejudge.scoring.judging.request import JudgeRequest
from sidejudge.scoring.lexical.token_estimate import estimate
from sidejudge.scoring.result.reason import Reason, own, part, quoted
from sidejudge.scoring.status.snapshots import JudgeModelSnapshot

from .bill import JudgeBill
from .breaker import REACTIONS, Breaker, Permit, pause
from .budget import HOUR_S, JudgeBudget
from .call_record import Exchange
from .probe import HEALTH_PROBE
from .rate_limits import RateLimits

_GRACE_S: Final = 5.0
"""Seconds beyond its own timeout after which an attempt is cancelled from outside."""
_LEARNING: Final = 0.1
_SETTLES_S: Final = 0.05
"""How often it is looked whether calls under way have settled."""

Client: TypeAlias = JudgeClient | BatchJudgeClient
"""Sends one request to a model. Raises ``ProviderError``."""
_ANOTHER_ANSWERS: Final = "what answers in its place cannot be read, as of a login or a proxy"


class UnansweredError(SidejudgeError):
    """A request without an answer, with the reason. ``kind`` is None where no provider failed."""

    def __init__(self, reason: Reason, *, kind: ProviderErrorKind | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


@dataclass(slots=True, kw_only=True)
class PanelMember:
    """One model. ``clock`` gives seconds since the epoch; ``remember`` writes dollars to the store."""

    model: JudgeModel
    client: Client
    limits: RateLimits
    budget: JudgeBudget
    remember: Callable[[float, float], Awaitable[None]]
    observer: JudgeObserver
    retries: int
    clock: Callable[[], float]
    jitter: Callable[[], float]
    breaker: Breaker = field(default_factory=Breaker)
    estimating: bool = False
    """Whether the last response came without an account of its tokens."""
    unpriced: bool = False
    """Whether no price is known of the last response."""
    _written: float = 1.0  # learned share of the allowed answer tokens that answers take
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, request: JudgeRequest, bill: JudgeBill) -> AnswerReading:
        """Ask until every question has a valid answer, or has had its second chance.

        Args:
            request: the questions. Those without a valid answer are asked once more, with the faults.
            bill: receives the cost as it is spent.

        Raises:
            UnansweredError: nothing was answered at all.
        """
        self.observer.asking(request.questions)
        completion = await self._until_answered(request, bill)
        first = await self._read(request, completion)
        bill.exchanges.append(self._exchange(completion, first))
        if not first.faults:
            return first
        try:
            rest = await asyncio.to_thread(request.again, first.faults)
            completion = await self._until_answered(rest, bill)
        except UnansweredError as error:
            if not first.answers:
                raise
            self.observer.repaired(self.model.name, requested=len(first.faults), answered=0)
            return AnswerReading(answers=first.answers, faults=dict.fromkeys(first.faults, str(error)))
        second = await self._read(rest, completion)
        complaint = rest.messages[-1]["content"].removeprefix(request.messages[-1]["content"])
        bill.exchanges.append(self._exchange(completion, second, complaint))
        self.observer.repaired(self.model.name, requested=len(first.faults), answered=len(second.answers))
        cut = ", cut off at the longest answer that it may give" if completion.cut_off else ""
        return AnswerReading(
            answers={**first.answers, **second.answers},
            faults={question: f"parse_error: {fault}{cut}" for question, fault in second.faults.items()},
        )

    def state(self) -> JudgeModelSnapshot:
        """Whether the model can be asked, and why not."""
        return self.breaker.state(self.clock())

    def _exchange(self, completion: Completion, reading: AnswerReading, complaint: str = "") -> Exchange:
        return Exchange(
            model=self.model.name,
            text=completion.text,
            duration_s=completion.duration_s,
            input_tokens=completion.usage.input_tokens,
            output_tokens=completion.usage.output_tokens,
            cost_usd=completion.usage.cost_usd,
            finish_reason=completion.finish_reason,
            faults=tuple(dict.fromkeys(reading.faults.values())),
            complaint=complaint.strip(),
        )

    async def _read(self, request: JudgeRequest, completion: Completion) -> AnswerReading:
        reading: AnswerReading | None = None
        shapes: Counter[str] = Counter()
        try:
            reading = await asyncio.to_thread(request.read, completion.text, completion.tokens)
            shapes.update(reading.shapes)
            if completion.tool_call and reading.answers:
                shapes["tool_call"] = 1
            if reading.answers:
                shapes.update(completion.shapes)
        finally:
            self._report(completion, None if reading is not None and reading.answers else "parse_error", shapes)
        return reading

    def _report(self, completion: Completion, failure: str | None, shapes: Mapping[str, int] | None = None) -> None:
        self.observer.attempted(JudgeAttempt(
            model=self.model.name, duration_s=completion.duration_s, usage=completion.usage, failure=failure,
            completion=completion, shapes=shapes or {},
        ))  # fmt: skip

    async def _until_answered(self, request: JudgeRequest, bill: JudgeBill) -> Completion:
        for attempt in range(self.retries + 1):
            try:
                return await self._attempt(request, bill)
            except ProviderError as error:
                bill.exchanges.append(Exchange(model=self.model.name, failure=str(error)))
                reaction = REACTIONS[error.kind]
                wait_s = pause(attempt, error.retry_after_s, self.jitter()) if attempt < self.retries else None
                if not reaction.retry or wait_s is None:
                    outage = reaction.outage or self.state().circuit == "open"
                    if not outage and error.kind is ProviderErrorKind.BAD_ANSWER:
                        outage = await self._another_answers()
                    why = Reason("{error}", error=quoted(str(error)))
                    unavailable = Reason("{outage}: {why}", outage=own(OUTAGE), why=why)
                    raise UnansweredError(unavailable if outage else why, kind=error.kind) from None
                await asyncio.sleep(wait_s)
        raise AssertionError("a loop of at least one attempt")

    async def _attempt(self, request: JudgeRequest, bill: JudgeBill) -> Completion:
        allowed = max(self.model.max_tokens, request.answer_tokens)
        price = await self.price()
        expected = ProviderUsage(input_tokens=request.prompt_tokens, output_tokens=round(allowed * self._written))
        async with self.limits.slot(expected.input_tokens + expected.output_tokens) as slot:
            usage = ProviderUsage()
            try:
                while (permit := await self._permit()).probe:
                    await self._probe_health(permit, price)
                usage = expected  # a cancelled call may be charged all the same, for the limits as for the budget
                completion = await self._paid(request, permit, expected, price, bill)
                usage = completion.usage
                self._written += _LEARNING * (min(1.0, usage.output_tokens / allowed) - self._written)
            except ProviderError as error:
                usage = _charged(error, expected, price) or expected
                raise
            except UnansweredError:
                usage = ProviderUsage()
                raise
            finally:
                slot.used(usage.input_tokens + usage.output_tokens)
            return completion

    async def _probe_health(self, permit: Permit, price: TokenPrice | None) -> bool:
        """Send the health probe and report its result to the breaker; whether the provider answered it."""
        expected = ProviderUsage(input_tokens=HEALTH_PROBE.prompt_tokens, output_tokens=HEALTH_PROBE.answer_tokens)
        with suppress(ProviderError):
            completion = await self._paid(HEALTH_PROBE, permit, expected, price, JudgeBill())
            self._report(completion, failure=None)
            return True
        return False

    async def _blamed(self, error: ProviderError, permit: Permit, price: TokenPrice | None) -> ProviderError:
        """The error of a request, or that its content is refused: a firewall in between answers 403 and 404, too.

        Where the provider answers the health probe at the same time, neither the key nor the model is wrong.
        """
        perhaps = error.status in OF_CONTENTS and REACTIONS[error.kind].breaker == "trips"
        if not perhaps or self.state().circuit != "closed":
            return error
        with suppress(UnansweredError):
            if await self._probe_health(permit, price):
                kind = ProviderErrorKind.CONTENT_REFUSED
                return ProviderError(kind, error.message, status=error.status, usage=error.usage)
        return error

    async def _another_answers(self) -> bool:
        """Whether the health probe cannot be read either: a login or a proxy answers, and a request may wait."""
        try:
            price = await self.price()
            permit = self.breaker.permit(self.clock())
            return permit is None or not await self._probe_health(permit, price)
        except UnansweredError:  # the budget has no room for it
            return False

    async def _paid(
        self, request: JudgeRequest, permit: Permit, expected: ProviderUsage, price: TokenPrice | None, bill: JudgeBill
    ) -> Completion:
        """One call, if the budget allows it. Raises ``UnansweredError`` if it does not."""
        paid = price.of(expected.input_tokens, expected.output_tokens) if price else 0.0
        while (reservation := self.budget.reserve(paid, self.clock())) is None:
            if not self.budget.fits_later(paid, self.clock()):
                self.breaker.abandoned(permit)
                self._moved.set()
                why = own(self.budget.refusal(paid, self.clock()))
                spent = Reason("{what}: the budget for judging is spent: {why}", what=own(OVER_BUDGET), why=why)
                raise UnansweredError(spent)
            await asyncio.sleep(_SETTLES_S)  # what is set aside for calls under way is mostly more than they cost
        began, ahead = self.clock(), paid
        usage: ProviderUsage | None = None
        try:
            await self._note(
                ahead, began
            )  # before the call: a process that is killed during it has spent it all the same
            completion = _accounted(await self._once(request, permit, expected, price), expected, price)
            usage = completion.usage
            self.estimating, self.unpriced = usage.estimated, usage.cost_usd is None
        except ProviderError as error:
            usage = _charged(error, expected, price)
            raise
        finally:
            if usage is not None:
                usd = self._usd(usage, price)
                paid = usd or 0.0
                bill.add(usage, usd)
            else:  # cancelled: whether it is charged stays unknown
                bill.add(ProviderUsage(), None)
            now = self.clock()
            self.budget.settle(reservation, paid, now)
            if now // HOUR_S == began // HOUR_S:
                await self._note(paid - ahead, now)
            else:
                await self._note(-ahead, began)
                await self._note(paid, now)
        return completion

    async def _note(self, usd: float, now: float) -> None:
        if usd:
            await self.remember(usd, now)

    async def _once(
        self, request: JudgeRequest, permit: Permit, expected: ProviderUsage, price: TokenPrice | None
    ) -> Completion:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.model.timeout_s + _GRACE_S):
                complete = self.client.at_once if request is HEALTH_PROBE else self.client.complete
                completion = await complete(request, self.model)
        except (ProviderError, TimeoutError) as failure:
            error = failure if isinstance(failure, ProviderError) else ProviderError(ProviderErrorKind.TIMEOUT)
            duration_s = time.monotonic() - began
            if request is not HEALTH_PROBE:
                error = await self._blamed(error, permit, price)
            elif error.kind is ProviderErrorKind.BAD_ANSWER:
                error = ProviderError(ProviderErrorKind.UNREACHABLE, connection=_ANOTHER_ANSWERS)
            self.breaker.failed(permit, error, self.clock())
            usage = ProviderUsage(cost_usd=None)  # a timeout: whether it is charged stays unknown
            if (charged := _charged(error, expected, price)) is not None:
                usage = replace(charged, cost_usd=self._usd(charged, price))
            self.observer.attempted(
                JudgeAttempt(model=self.model.name, duration_s=duration_s, usage=usage, failure=error.kind)
            )
            raise error from None
        except BaseException:
            self.breaker.abandoned(permit)
            raise
        else:
            self.breaker.succeeded(permit, self.clock())
            return completion
        finally:
            self._moved.set()

    async def _permit(self) -> Permit:
        """A permit of the breaker. While another call probes, this one waits for its result."""
        while (permit := self.breaker.permit(self.clock())) is None:
            state = self.state()
            if state.circuit == "open":
                raise UnansweredError(Reason("{outage}: {why}", outage=own(OUTAGE), why=quoted(state.reason)))
            self._moved.clear()
            await self._moved.wait()
        return permit

    async def price(self) -> TokenPrice | None:
        """The model's price, None where unknown. Raises ``UnansweredError`` where a budget needs it."""
        price = await self.client.price(self.model)
        if price is None and self.budget.limited:
            raise UnansweredError(
                Reason(
                    "{what}: no price is known of {model}, so no budget can be kept; set evaluators.judge.price "
                    "(others of a panel need a list price)",
                    what=own(OVER_BUDGET),
                    model=part(self.model.name),
                )
            )
        return price

    @staticmethod
    def _usd(usage: ProviderUsage, price: TokenPrice | None) -> float | None:
        """Dollars of a finished call; where the provider gives none, by price and tokens."""
        if usage.cost_usd is None and price is not None:
            return price.of(usage.input_tokens, usage.output_tokens)
        return usage.cost_usd


def _charged(error: ProviderError, expected: ProviderUsage, price: TokenPrice | None) -> ProviderUsage | None:
    """The usage of a call without an answer; None where it is unknown whether it is charged.

    A refusal and a response that cannot be read were written by a model, so that without an account they are estimated.
    """
    if error.kind is ProviderErrorKind.TIMEOUT:
        return None
    written = error.kind is ProviderErrorKind.BAD_ANSWER or (
        error.kind is ProviderErrorKind.CONTENT_REFUSED and error.status is None
    )
    if not written or error.usage.input_tokens > 0:
        return error.usage
    usd = price.of(expected.input_tokens, expected.output_tokens) if price is not None else None
    return replace(expected, cost_usd=usd, estimated=True)


def _accounted(completion: Completion, expected: ProviderUsage, price: TokenPrice | None) -> Completion:
    """The response with its usage; where the provider reports it partly or not at all, our estimate replaces it.

    Without one every call would be free, and no budget would ever end.
    """
    stated = completion.usage
    read = stated.input_tokens if stated.input_tokens > 0 else expected.input_tokens
    written = stated.output_tokens if stated.output_tokens > 0 else estimate(completion.text)
    estimated = (read, written) != (stated.input_tokens, stated.output_tokens)
    if not estimated and stated.cost_usd is not None:
        return completion
    usd = price.of(read, written) if price is not None else None
    usage = ProviderUsage(input_tokens=read, output_tokens=written, cost_usd=usd, estimated=estimated)
    return replace(completion, usage=usage)
