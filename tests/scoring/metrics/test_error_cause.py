"""The cause of an error is named by its class, and what somebody wrote is never taken for one."""

from __future__ import annotations

import pytest

from sidejudge.scoring.metrics.run_steps import cause, failure_part, stated_cause
from sidejudge.scoring.result.reason import Rights


@pytest.mark.parametrize(
    ("error", "whole", "shown"),
    [
        ("RuntimeError: database is down", "RuntimeError (database is down)", "RuntimeError (…)"),
        ("httpx.ReadTimeout: \nno answer", "ReadTimeout", "ReadTimeout"),
        ("KeyError", "KeyError", "KeyError"),
        ("openai.RateLimitError: slow down, Ann", "RateLimitError (slow down, Ann)", "RateLimitError (…)"),
        ("Rate limit reached for Ann", "rate limit (Rate limit reached for Ann)", "rate limit (…)"),
        ("Smith: her card was declined", "error (Smith: her card was declined)", "error (…)"),
        ("hunter2", "error (hunter2)", "error (…)"),
        ("Ann's KeyError: x", "error (Ann's KeyError: x)", "error (…)"),
        ("Error: database is down", "error (database is down)", "error (…)"),
        (
            'Traceback (most recent call last):\n  File "a.py", line 1\nsqlite3.OperationalError: no table Ann',
            "error (sqlite3.OperationalError: no table Ann)",
            "error (…)",
        ),
        ("error", "error", "error"),
        ("", "error", "error"),
    ],
)
def test_the_class_is_shown_and_the_message_is_content(error, whole, shown):
    assert stated_cause(error) == whole
    assert stated_cause(error).shown() == shown


def test_a_kind_of_error_is_ours_and_a_class_is_the_applications():
    assert cause("RateLimitError: slow down, customer 4711").text == "rate limit"
    assert stated_cause("RuntimeError: x").shown(Rights.OWN) == "…"[:1] + " (…)"
    assert failure_part("HTTP 404").kind != failure_part("ValueError").kind
