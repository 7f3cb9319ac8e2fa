"""The average run length of a change chart, from the product's own recursion: what tables and tests compare with."""

from __future__ import annotations

from scoring.statistics.cusum import _run_lengths


def average_run_length(pass_ratio: float, *, jump: int, limit_steps: int) -> float:
    """Verdicts until S first reaches the limit, on average, from 0."""
    return next(mean for height, mean in enumerate(_run_lengths(pass_ratio, jump), 1) if height == limit_steps)
