"""Garbage collection between batches.

CPython collects whenever enough objects were created: usually in the middle of a batch, when most objects are still in
use, or during a request, which then waits. Here it collects when a batch is done and no request is in progress. Which
generations are collected is still CPython's choice.
"""

from __future__ import annotations

import gc
from typing import Final

_OLDER: Final = (10, 10)
"""Collections of one generation before the next older one is collected: CPython's own numbers."""
_YOUNG: Final = 700
"""New objects from which a collection is worthwhile: CPython's own number."""
_ANYWHERE: Final = 20_000
"""New objects from which CPython collects at any point: about 8 ms, which a request may have to wait."""


def collect_rarely() -> None:
    """Leave collection to ``collect_if_due``. Objects from start-up are never examined again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ANYWHERE, *_OLDER)


def collect_if_due() -> None:
    """Collect if enough objects were created since the last time. Called when no request waits."""
    if gc.get_count()[0] > _YOUNG:
        gc.set_threshold(_YOUNG, *_OLDER)
        _ = {None}  # CPython compares with the threshold when a container is created
        gc.set_threshold(_ANYWHERE, *_OLDER)
