"""Recent: what was seen last, and no more of it than there is room for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Recent(Generic[K]):
    """At most ``most`` keys. A new one takes the place of the one not seen for longest, if that is ``idle_s`` ago.

    Where all were seen since, the new one finds no room: whoever sends ever new keys replaces at most ``most`` of
    them in ``idle_s`` seconds, and none that is in use.

    Args:
        most: How many keys are kept.
        idle_s: Seconds without a sight after which a key may be forgotten. It is kept while there is room.
        clock_s: Seconds that never go back.
        forgotten: Called with each key that is forgotten.
    """

    def __init__(
        self, most: int, *, idle_s: float, clock_s: Callable[[], float], forgotten: Callable[[K], None]
    ) -> None:
        self._most, self._idle_s, self._clock_s, self._forgotten = most, idle_s, clock_s, forgotten
        self._seen: OrderedDict[K, float] = OrderedDict()

    def admits(self, key: K) -> bool:
        """Whether there is room for a key, which is seen now."""
        now = self._clock_s()
        if key not in self._seen and len(self._seen) >= self._most:
            oldest = next(iter(self._seen))
            if now - self._seen[oldest] < self._idle_s:
                return False
            self.forget(oldest)
        self._seen[key] = now
        self._seen.move_to_end(key)
        return True

    def forget(self, key: K) -> None:
        """Make room."""
        if self._seen.pop(key, None) is not None:
            self._forgotten(key)

    def __iter__(self) -> Iterator[K]:
        return iter(tuple(self._seen))
