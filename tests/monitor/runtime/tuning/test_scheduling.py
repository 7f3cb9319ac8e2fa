"""Turns: the event loop's thread has short ones, and nobody else's are changed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ASKED = """
import ctypes, json, os, struct, sys, threading
from sidejudge.monitor.runtime import tuning as scheduling

GETATTR = {314: 315, 274: 275}

def turn():
    # policy, niceness and the length of a turn in ns of the calling thread
    room = ctypes.create_string_buffer(56)
    number = GETATTR[scheduling._SCHED_SETATTR[os.uname().machine]]
    assert ctypes.CDLL(None).syscall(ctypes.c_long(number), 0, room, 56, 0) == 0
    _, policy, _, nice, _, length = struct.unpack_from("=IIQiIQ", room)
    return policy, nice, length

os.nice(int(sys.argv[1]))
os.sched_setscheduler(0, getattr(os, sys.argv[2]), os.sched_param(0))
before = turn()
scheduling.shorten_slices()
beside = []
other = threading.Thread(target=lambda: beside.append(turn()))
other.start()
other.join()
print(json.dumps([before, turn(), beside[0]]))
"""


def requested(nice: int, policy: str) -> list[list[int]]:
    """Policy, niceness and turn of a process's first thread before and after, and of a thread that it starts then."""
    if sys.platform != "linux":
        pytest.skip("only Linux is asked")
    run = subprocess.run([sys.executable, "-c", ASKED, str(nice), policy], capture_output=True, check=True)
    found = json.loads(run.stdout)
    if not found[0][2]:
        pytest.skip("this kernel does not tell the length of turns")
    return found


def test_the_thread_that_asks_has_short_turns_and_those_that_it_starts_the_usual_ones():
    before, after, beside = requested(3, "SCHED_OTHER")
    assert after == [*before[:2], 300_000]
    assert beside == before


def test_who_has_chosen_how_the_process_is_scheduled_is_not_overruled():
    before, after, beside = requested(0, "SCHED_BATCH")
    assert before == after == beside
