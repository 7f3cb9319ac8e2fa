"""Turns: how soon the event loop computes once there is something to do, though judging computes as well.

There are two queues. The kernel's: a thread that wakes may find every processor taken, and Linux then lets the one that
computes go on to the next tick (4 ms at 250 Hz) unless the other asks for shorter turns than it (EEVDF, from 6.12).
The interpreter's: of several threads one computes at a time, and the others wait for its turn to end.
"""

from __future__ import annotations

import os
import platform
import struct
import sys
from typing import Final

_INTERPRETER_S: Final = 0.0005
"""How long one thread computes before another that waits gets its turn (CPython's own: 5 ms).

A request wakes the event loop several times, and while a trace is judged each time waits so long; where requests go
on, judging gives way (``giving_way.py``). Shorter turns cost CPU: at 0.1 ms a tenth more in all.
"""
_KERNEL_NS: Final = 300_000
"""About what the loop computes when it is woken: a shorter turn comes sooner (0.1 ms is Linux's shortest), and ends so.

Threads usually have 0.7 to 2.8 ms, by the number of processors. A thread's share of them stays what it is.
"""
_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
"""Number of the system call; the C library has a function for it only from glibc 2.41 on."""
_RESET_ON_FORK: Final = 0x01
"""Threads and processes that this thread starts later have turns of the usual length."""


def take_short_turns() -> None:
    """For the calling thread, the event loop's: short turns, soon. Before it starts others, for those are not meant.

    A kernel that cannot do this, or a system that does not allow it, leaves things as they are; so does this where
    whoever started the process has chosen how it is scheduled.
    """
    sys.setswitchinterval(_INTERPRETER_S)
    number = _SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if os.sched_getscheduler(0) != os.SCHED_OTHER or nice < 0:
        return
    import ctypes  # noqa: PLC0415 - only here

    # struct sched_attr of <linux/sched/types.h>: size, policy, flags, nice, priority, runtime, deadline, period
    attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, _RESET_ON_FORK, nice, 0, _KERNEL_NS, 0, 0)
    ctypes.CDLL(None).syscall(ctypes.c_long(number), 0, attributes, 0)
