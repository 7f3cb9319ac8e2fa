"""Settings of interpreter and kernel: each is measured, can be switched off, and changes no result."""

from __future__ import annotations

import gc
import os
import platform
import struct
import sys
import time
from collections.abc import Callable
from typing import Final

from sidejudge.integrations.otlp.server.traffic import ActiveRequests

# Garbage collection between batches.
#
# CPython collects whenever enough objects were created: usually in the middle of a batch, when most objects are still
# in use, or during a request, which then waits. Here it collects when a batch is done and no request is in progress.
# Which generations are collected is still CPython's choice.

_OLDER: Final = (10, 10)
"""Collections of one generation before the next older one is collected: CPython's own numbers."""
_YOUNG: Final = 700
"""Number of new objects that makes a collection worthwhile: CPython's own."""
_ANYWHERE: Final = 20_000
"""Number of new objects after which CPython collects at any point: about 8 ms, which a request may have to wait."""


def collect_rarely() -> None:
    """Leave collection to ``collect_if_due``. Objects from start-up are never examined again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ANYWHERE, *_OLDER)


def collect_if_due() -> None:
    """Collect if enough objects were created since the last time. Called when no request waits."""
    if gc.get_count()[0] > _YOUNG:
        gc.set_threshold(_YOUNG, *_OLDER)
        _create_container()  # CPython compares with the threshold then
        _nothing()  # from 3.12 on it collects at the next call
        gc.set_threshold(_ANYWHERE, *_OLDER)


def _create_container() -> set[None]:
    return {None}


def _nothing() -> None:
    pass


# glibc's allocator keeps the memory of one request's body for the next.
#
# A body of 100 kB is above the size that glibc keeps when it is freed: it returns the pages to the kernel, which
# clears new ones for the next body, forty of them for 170 kB. That was a quarter of the CPU time of intake.
# All threads share one heap, where each would have its own: 4 MB less under load, and as fast, for one runs at a time.

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""Parameters of ``mallopt``, as glibc's ``malloc.h`` numbers them."""
_KEPT: Final = 8 << 20
"""Bytes that may stay free at the end of the heap: a few bodies and their spans."""
_LARGE: Final = 4 << 20
"""Least size of an allocation with its own mapping, which is returned at once."""


def keep_freed_memory() -> None:
    """With glibc, set this process's allocation thresholds and a single heap; other C libraries are left alone."""
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - only here

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_ARENA_MAX, 1)


# Scheduling: how soon the event loop runs when it is woken while judging computes.
#
# It may wait in two queues. The kernel's: where all processors are busy, Linux lets the running thread continue to
# the next tick (4 ms at 250 Hz), unless the woken one asks for shorter slices (EEVDF, from 6.12). The interpreter's:
# of several threads one runs at a time, and the others wait for the end of its switch interval.

_INTERPRETER_S: Final = 0.0005
"""CPython's switch interval (default: 5 ms).

A request wakes the event loop several times, and each time may wait this long while a trace is judged; while requests
are forwarded, judging yields (``YieldToRequests``). Shorter intervals cost CPU: 0.1 ms costs a tenth in all.
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


# Judging yields while a request is forwarded.
#
# Threads of one interpreter run one at a time, and a forwarded request wakes the event loop about ten times; each
# time it would wait for the judging thread. Judging can wait. Because traffic may never pause, it waits at most as
# long as it has worked: at worst it runs at half speed.

_CREDIT_S: Final = 0.02
"""The longest wait at once, in seconds, however long judging has worked without waiting."""


class YieldToRequests:
    """Called by the judging thread where it may pause; returns at once when no request is in progress."""

    def __init__(self, active: ActiveRequests, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._active, self._clock_s = active, clock_s
        self._credit_s = 0.0
        self._since_s = clock_s()

    def __call__(self) -> None:
        left_s = self._active.left_s
        if not left_s:
            return
        now_s = self._clock_s()
        self._credit_s = min(_CREDIT_S, self._credit_s + now_s - self._since_s)
        self._active.wait(min(left_s, self._credit_s))
        self._since_s = self._clock_s()
        self._credit_s -= self._since_s - now_s
