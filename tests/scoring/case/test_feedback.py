"""Whether a user complained, however that was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.case.feedback import KEYS, negative

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
)


@pytest.mark.parametrize(
    "stated",
    ["negative", " Thumbs_Down ", "👎", "0", "-1", "false", 0, -1, -0.5, False, {"score": 0, "comment": "no!"},
     {"label": "bad", "score": 1}, [1, 0], {"value": "down"}, [True, False]],
)  # fmt: skip
def test_complaints(stated):
    assert negative({"feedback": stated}) is True


@pytest.mark.parametrize("stated", ["positive", "👍", "1", 1, 5, 0.5, True, {"score": 1}, [1, True], {"label": "good"}])
def test_praise(stated):
    assert negative({"feedback": stated}) is False


@pytest.mark.parametrize(
    "stated", [None, "", "it was fine I guess", {}, [], {"comment": "no"}, [[0]], float("nan"), "x" * 99]
)
def test_what_is_not_understood_is_no_feedback(stated):
    assert negative({"feedback": stated}) is None


def test_the_first_key_that_is_understood_counts():
    assert negative({"feedback": "hm", "user_feedback": "bad"}) is True
    assert all(negative({key: 0}) is True for key in KEYS)
    assert negative({"thumb": 0}) is None


@given(st.dictionaries(st.sampled_from(KEYS), JSON))
def test_nothing_chokes_it(metadata):
    assert negative(metadata) in (True, False, None)
