"""Bill: what calls to a judge cost, and which reply carries it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sidejudge.integrations.provider.errors import ProviderUsage
from sidejudge.scoring.questions.question import Question, Reply
from sidejudge.scoring.result.result import Judgement
from sidejudge.scoring.verdict.review_reason import COST_ESTIMATED, COST_UNKNOWN

from .call_record import Exchange


@dataclass(slots=True)
class JudgeBill:
    """The cost of a request with its retries. ``complete`` is false once the cost of one of them is unknown.

    ``estimated``: for one of them the provider gave no account.
    """

    usd: float = 0.0
    complete: bool = True
    estimated: bool = False
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    exchanges: list[Exchange] = field(default_factory=list)
    """The prompts and answers of this bill's calls."""

    def add(self, usage: ProviderUsage, usd: float | None) -> None:
        """Add one request."""
        self.take(JudgeBill(usd or 0.0, usd is not None, usage.estimated, 1, usage.input_tokens, usage.output_tokens))

    def take(self, other: JudgeBill) -> None:
        """Add the requests of another bill."""
        self.usd += other.usd
        self.complete = self.complete and other.complete
        self.estimated |= other.estimated
        self.requests += other.requests
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens

    def judgement(self, judge: str, prompt_version: str, call: str) -> Judgement | None:
        """The cost of a call; None where none was sent."""
        if not self.requests:
            return None
        return Judgement(
            judge,
            prompt_version,
            cost_usd=self.usd,
            call=call,
            flags=(*(() if self.complete else (COST_UNKNOWN,)), *((COST_ESTIMATED,) if self.estimated else ())),
            requests=self.requests,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
        )


def with_cost(replies: Mapping[Question, Reply], paid: Judgement | None) -> dict[Question, Reply]:
    """The replies, where the first call among them carries the cost of the one before it, too.

    Without any call among them they carry that cost alone.
    """
    first = next((each.judgement.call for each in replies.values() if each.judgement and each.judgement.call), None)

    def whole(reply: Reply) -> Reply:
        own = reply.judgement
        if own is None and first is None:
            return replace(reply, judgement=paid)
        if paid is None or own is None or own.call != first:
            return reply
        return replace(reply, judgement=replace(
            own, cost_usd=own.cost_usd + paid.cost_usd, requests=own.requests + paid.requests,
            input_tokens=own.input_tokens + paid.input_tokens, output_tokens=own.output_tokens + paid.output_tokens,
            flags=tuple(dict.fromkeys((*paid.flags, *own.flags))),
        ))  # fmt: skip

    return {question: whole(reply) for question, reply in replies.items()}
