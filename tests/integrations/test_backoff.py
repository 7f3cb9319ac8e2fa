"""How long a server asks to be left alone, whichever of the two forms it states it in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.backoff import requested_s

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("stated", "seconds"),
    [
        ("7", 7.0), (" 0.5 ", 0.5), ("-3", 0.0), ("Thu, 01 Jan 2026 00:01:00 GMT", 60.0),
        ("Wed, 31 Dec 2025 23:59:00 GMT", 0.0), ("soon", None), ("nan", None), ("inf", None), ("", None), (None, None),
        ("²", None), ("Sat, 21 Nov 99999999 10:03:20 GMT", None), ("1e300", 1e9), ("9" * 30, 1e9),
    ],
)  # fmt: skip
def test_a_wait_is_stated_in_seconds_or_by_a_date(stated, seconds):
    assert requested_s(stated, NOW) == seconds


@given(st.text())
def test_whatever_is_stated_a_wait_is_not_negative_and_has_an_end(stated):
    assert 0.0 <= (requested_s(stated, NOW) or 0.0) <= 1e9
