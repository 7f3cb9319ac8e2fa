"""glibc's allocator keeps the memory of one request's body for the next.

A body of 100 kB is above the size that glibc keeps when it is freed: it returns the pages to the kernel, which clears
new ones for the next body, forty of them for 170 kB. That was a quarter of the CPU time of intake.
"""

from __future__ import annotations

import sys
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Parameters of ``mallopt``, as glibc's ``malloc.h`` numbers them."""
_KEPT: Final = 8 << 20
"""Bytes that may stay free at the end of the heap: a few bodies and their spans."""
_LARGE: Final = 4 << 20
"""Size from which an allocation is a mapping of its own, which is returned at once."""


def keep_freed_memory() -> None:
    """Set the thresholds of this process where its C library is glibc; another one is left as it is."""
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - only here

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGE)
