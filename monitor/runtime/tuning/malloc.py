"""Allocator: the memory that held one request's body is kept for the next.

A body of some 100 kB is more than glibc keeps when it is freed: it goes back to the kernel, and the next body is given
pages that have to be found and cleared anew, forty of them for 170 kB. That was a quarter of what intake costs.
"""

from __future__ import annotations

import sys
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Parameters of ``mallopt``, as glibc's ``malloc.h`` numbers them."""
_KEPT: Final = 8 << 20
"""Bytes that may stay free at the end of the heap: a few bodies, and what is made of them."""
_LARGE: Final = 4 << 20
"""Bytes from which on something has a mapping of its own, which goes back at once."""


def keep_freed_memory() -> None:
    """Tell the C library of this process, where that is glibc; another one is left as it is."""
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - only here

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGE)
