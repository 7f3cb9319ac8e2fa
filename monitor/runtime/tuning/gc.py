"""Garbage: when Python looks for objects that only hold each other.

By itself it looks whenever enough objects have been made, wherever that happens to be: as a rule in the middle of a
batch, when most of what it looks at is still needed, or while a request goes on, which then waits for the garbage of
judging. Here it looks when a batch is done and no request is on its way, by its own rules as to how far.
"""

from __future__ import annotations

import gc
from typing import Final

_OLDER: Final = (10, 10)
"""After how many looks at young objects those that survived one are looked at, and so on: CPython's own numbers."""
_YOUNG: Final = 700
"""New objects from which on a look is worth it: CPython's own number."""
_ANYWHERE: Final = 20_000
"""New objects from which on Python looks wherever it is: some 8 ms, for which requests may have to wait."""


def look_rarely() -> None:
    """From now on leave it to ``look``. What start-up made lives for ever and is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ANYWHERE, *_OLDER)


def look() -> None:
    """Look for garbage where there may be any; here and now nobody is kept waiting by that."""
    if gc.get_count()[0] > _YOUNG:
        gc.set_threshold(_YOUNG, *_OLDER)
        _ = {None}  # Python compares with the threshold when something is made
        gc.set_threshold(_ANYWHERE, *_OLDER)
