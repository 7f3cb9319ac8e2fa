from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.monitor.api.view import Position


@given(
    st.integers(0, 2**63 - 1), st.binary(min_size=16, max_size=16), st.sampled_from(["qa", "workflow", "my_rubric_2"])
)
def test_a_cursor_names_the_position_it_was_made_of(closed_ns, trace_id, rubric):
    position = Position(closed_ns=closed_ns, trace_id=trace_id.hex(), rubric=rubric)
    assert Position.parse(str(position)) == position


@given(st.text(max_size=80))
def test_what_is_no_cursor_is_refused_with_the_way_out(text):
    with pytest.raises(ValueError, match="next_cursor"):
        Position.parse(text)
