"""Expense: a run's requests to judges and their cost, for the line that ends its report."""

from __future__ import annotations

from dataclasses import dataclass

from sidejudge.monitor.evaluate.judge.observer import JudgeAttempt, SilentJudgeObserver


@dataclass(slots=True)
class Expense(SilentJudgeObserver):
    """Counts every request, those that failed too. ``unpriced`` counts those of which no price is known."""

    requests: int = 0
    failed: int = 0
    hits: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0

    def attempted(self, attempt: JudgeAttempt) -> None:
        usage = attempt.usage
        self.requests += 1
        self.failed += attempt.failure is not None
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.usd += usage.cost_usd or 0.0
        self.unpriced += usage.cost_usd is None

    def looked_up(self, *, hits: int, misses: int) -> None:  # noqa: ARG002  # the observer's signature
        self.hits += hits

    def reported(self) -> str | None:
        """One line for people; None without a judge.

        >>> Expense(requests=1200, failed=3, input_tokens=519000, output_tokens=24000, usd=0.0923).reported()
        'judge: 1,200 requests (3 in vain), 519,000 + 24,000 tokens, 0.0923 USD'
        """
        if not self.requests and not self.hits:
            return None
        parts = [f"{self.requests:,} {'request' if self.requests == 1 else 'requests'}"]
        parts[0] += f" ({self.failed:,} in vain)" if self.failed else ""
        parts.append(f"{self.input_tokens:,} + {self.output_tokens:,} tokens")
        parts.append("cost not known" if self.unpriced == self.requests > 0 else f"{self.usd:.4f} USD")
        if 0 < self.unpriced < self.requests:
            parts[-1] += f", and {self.unpriced:,} of unknown price"
        if self.hits:
            parts.append(f"{self.hits:,} answers out of the cache")
        return "judge: " + ", ".join(parts)
