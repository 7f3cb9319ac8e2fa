"""Records of spans compare by value, hash, and have no other fields than those they declare."""

from __future__ import annotations

import pytest
from msgspec.structs import fields, replace

from sidejudge.scoring.trace.span import Message, ToolCall, Usage


def test_records_that_say_the_same_are_equal_and_hash_alike() -> None:
    first, second = (Message(role="user", text="Hi", tool_calls=(ToolCall(name="search"),)) for _ in range(2))
    assert first == second
    assert len({first, second, replace(second, text="Ho")}) == 2


def test_records_have_their_fields_and_no_others() -> None:
    assert [field.name for field in fields(Usage)] == ["input", "output", "cached_input", "reasoning_output", "own"]
    assert not hasattr(Usage(input=1, output=2), "__dict__")
    with pytest.raises(TypeError):
        Usage(1, 2)
