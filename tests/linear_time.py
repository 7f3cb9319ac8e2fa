"""Whether work grows in proportion to its input: a ratio of two measurements in one run, on a machine of any speed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import TraceFunction

SHORT, LONG = 15_000, 60_000
"""Characters. Work in the square of the length takes 16 times as long on the longer text."""
MOST = 9.0
FLOOR_S = 0.02
"""Below this the clock tells nothing."""


def assert_linear(work: Callable[[int], object]) -> None:
    """``work`` on a length of ``LONG`` takes at most ``MOST`` times the CPU of one of ``SHORT``; best of three.

    Once is enough where it takes hardly more than in proportion: a measurement is doubled now and then, not more.
    """
    long, short = _cpu_seconds(work, LONG), _cpu_seconds(work, SHORT)
    if long <= MOST / 2 * short + FLOOR_S:
        return
    short = min(short, *(_cpu_seconds(work, SHORT) for _ in range(2)))
    most = MOST * short + FLOOR_S
    for _ in range(2):
        if long > most:  # something else may have fallen into the measurement
            long = min(long, _cpu_seconds(work, LONG))
    assert long <= most, f"{long / max(short, 1e-9):.1f} times as long for 4 times the text"


def _cpu_seconds(work: Callable[[int], object], length: int) -> float:
    start = time.process_time()
    work(length)
    return time.process_time() - start


def steps(work: Callable[[], object]) -> int:
    """How many instructions of Python ``work`` takes: the same on every machine. What is inside of C is not counted."""
    count, before = 0, sys.gettrace()

    def trace(frame: FrameType, event: str, _: object) -> TraceFunction:
        nonlocal count
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
