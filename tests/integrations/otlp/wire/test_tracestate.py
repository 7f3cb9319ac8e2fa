"""The ``ot`` entry of a trace state, by the examples of the specification and by what is not one."""

from __future__ import annotations

import pytest

from sidejudge.integrations.otlp.wire.tracestate import incoming_threshold, randomness

ID = bytes(range(16))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("ot=th:0", 0), ("ot=th:8", 1 << 55), ("ot=th:c", 3 << 54), ("ot=th:fd70a4", 0xFD70A400000000),
        ("a=b, ot=rv:00000000000001;th:c ,z=y", 3 << 54), ("ot=th:ffffffffffffff", (1 << 56) - 1),
        ("", None), ("ot=", None), ("ot=th:", None), ("ot=th:g", None), ("ot=th:C", None), ("ot=th:-8", None),
        ("ot=th:123456789abcdef", None), ("other=th:8", None), ("ot", None), ("ot=xth:8", None), (",,,", None),
        ("ot=p:8;q:1,ot=th:8", None),
    ],
)  # fmt: skip
def test_a_threshold_is_read_or_ignored(state, expected):
    assert incoming_threshold(state) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("ot=rv:00000000000001", 1), ("ot=th:8;rv:ffffffffffffff", (1 << 56) - 1),
        ("ot=rv:1", 0x090A0B0C0D0E0F), ("ot=rv:000000000000012", 0x090A0B0C0D0E0F),
        ("ot=rv:zzzzzzzzzzzzzz", 0x090A0B0C0D0E0F),
        ("", 0x090A0B0C0D0E0F), ("rv:00000000000001", 0x090A0B0C0D0E0F),
    ],
)  # fmt: skip
def test_randomness_is_explicit_or_the_last_seven_bytes(state, expected):
    assert randomness(ID, state) == expected
