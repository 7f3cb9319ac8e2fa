"""Consumed: tokens, cost and time of one model request."""

from __future__ import annotations

from typing import Protocol


class Consumed(Protocol):
    """Tokens and cost of a request; ``cost_usd`` None where no price is known."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def cost_usd(self) -> float | None: ...
