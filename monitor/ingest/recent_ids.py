"""Recent ids: which traces were met lately, in bounded memory."""

from __future__ import annotations

from collections.abc import Set as AbstractSet


class RecentIds:
    """Ids in two generations of at most ``remembered`` each.

    When the young one is full it becomes the old one, and the old one is forgotten. An id is thus remembered for at
    least the next ``remembered`` distinct ids. Its cost is about 100 bytes an id, 200 in the two generations.
    """

    def __init__(self, remembered: int) -> None:
        self._remembered = remembered
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._young or trace_id in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def learn(self, trace_ids: AbstractSet[bytes]) -> AbstractSet[bytes]:
        """Remember these; return those that were not known."""
        fresh = trace_ids
        if not (self._young.isdisjoint(trace_ids) and self._old.isdisjoint(trace_ids)):
            fresh = trace_ids - self._young - self._old
        if fresh:
            if len(self._young) + len(fresh) > self._remembered:
                self._old, self._young = self._young, set()
            # One request may hold more ids than a generation; what is beyond it is not remembered.
            room = self._remembered - len(self._young)
            self._young.update(fresh if len(fresh) <= room else list(fresh)[:room])
        return fresh
