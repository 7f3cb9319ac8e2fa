"""Scheduling: how soon the event loop runs when it is woken while judging computes.

It may wait in two queues. The kernel's: where all processors are busy, Linux lets the running thread continue to the
next tick (4 ms at 250 Hz), unless the woken one asks for shorter slices (EEVDF, from 6.12). The interpreter's: of
several threads one runs at a time, and the others wait for the end of its switch interval.
"""

from __future__ import annotations

import os
import platform
import struct
import sys
from typing import Final

_INTERPRETER_S: Final = 0.0005
"""CPython's switch interval (default: 5 ms).

A request wakes the event loop several times, and each time may wait this long while a trace is judged; while requests
are forwarded, judging yields (``yield_to_requests.py``). Shorter intervals cost CPU: 0.1 ms costs a tenth in all.
"""
_KERNEL_NS: Final = 300_000
"""The slice of the event loop's thread: about what it computes when it is woken (Linux's minimum is 0.1 ms).

A shorter slice starts sooner. The default is 0.7 to 2.8 ms, by the number of processors. The share of CPU stays.
"""
_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
"""Number of the system call; the C library has a function for it only from glibc 2.41 on."""
_RESET_ON_FORK: Final = 0x01
"""Threads and processes that are started later have the default slice."""


def shorten_slices() -> None:
    """Give the calling thread, the event loop's, a short slice. Call it before other threads are started.

    Nothing changes where the kernel cannot do this or does not allow it, or where the process was started with a
    scheduling policy of its own.
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
