"""Expense: the line that tells what judging cost, and never a price that nobody knows."""

from __future__ import annotations

import pytest

from sidejudge.integrations.provider.attempt import JudgeAttempt
from sidejudge.integrations.provider.errors import ProviderUsage
from sidejudge.monitor.offline.score.tally import Expense

PAID, FREE = (
    ProviderUsage(input_tokens=10, output_tokens=2, cost_usd=0.5),
    ProviderUsage(input_tokens=10, output_tokens=2),
)
UNKNOWN = ProviderUsage(input_tokens=10, output_tokens=2, cost_usd=None)


@pytest.mark.parametrize(
    ("requests", "hits", "line"),
    [
        ([], 0, None),
        ([(PAID, None)], 0, "judge: 1 request, 10 + 2 tokens, 0.5000 USD"),
        ([(PAID, None), (PAID, "parse_error")], 0, "judge: 2 requests (1 in vain), 20 + 4 tokens, 1.0000 USD"),
        ([(FREE, "overloaded")], 0, "judge: 1 request (1 in vain), 10 + 2 tokens, 0.0000 USD"),
        ([(UNKNOWN, None)] * 2, 0, "judge: 2 requests, 20 + 4 tokens, cost not known"),
        (
            [(UNKNOWN, None), (PAID, None)], 0,
            "judge: 2 requests, 20 + 4 tokens, 0.5000 USD, and 1 of unknown price",
        ),
        ([], 3, "judge: 0 requests, 0 + 0 tokens, 0.0000 USD, 3 answers out of the cache"),
    ],
)  # fmt: skip
def test_what_was_asked_and_paid_is_one_line(requests, hits, line):
    expense = Expense()
    for usage, failure in requests:
        expense.attempted(JudgeAttempt(model="m", duration_s=1.0, usage=usage, failure=failure))
    expense.looked_up(hits=hits, misses=0)
    assert expense.reported() == line
