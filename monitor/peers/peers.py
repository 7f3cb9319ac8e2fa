"""Peers: the other monitors, and which of them may hold spans of a trace. Pure; time is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

_MOST_LOST: Final = 100
"""Monitors that are gone and remembered, at most."""
_MOST_CHANGES: Final = 1_000
"""Changes that are remembered, at most; older ones are taken for one long change."""


@dataclass(slots=True)
class Peer:
    """Another monitor. ``run`` names its process; ``lost_ns`` is when it stopped answering, None while it answers."""

    name: str
    run: str
    url: str
    joined_ns: int = 0
    """When it was first met; 0: before this monitor began."""
    lost_ns: int | None = None
    left_ns: int | None = None
    """When it reported that it ended and holds nothing more; None: it did not."""


class Peers:
    """The other monitors, as greetings at regular times find them."""

    def __init__(self, *, settle_ns: int, now_ns: int) -> None:
        self.settle_ns = settle_ns
        self._changes = [now_ns]
        self.begun_ns = now_ns
        """Since when traces are sent here without a break."""
        self._forgotten_ns = 0
        self.met = False
        """Whether the others were contacted at all; before that they are unknown."""
        self._by_name: dict[str, Peer] = {}
        self._listed: bool | None = None

    def found(
        self, answers: Mapping[str, tuple[str, str]], now_ns: int, *, listed: bool, silent: Iterable[str] = ()
    ) -> None:
        """Take the answers to one round of greetings: name and process of each other monitor, by its address.

        ``listed``: this monitor was among the addresses. Where it was and is no more, its traces go elsewhere.
        ``silent`` are addresses without an answer: a monitor that was never met may hold spans of before.
        """
        self._date_back(now_ns)
        if listed and self._listed is False:
            self.begun_ns = now_ns
            self._change(now_ns)
        if listed or self._listed:
            self._listed = listed
        met = {peer.url for peer in self._by_name.values()}
        for url in silent:
            if url not in met:
                self._by_name[url] = Peer(url, "", url, lost_ns=now_ns)
        present = set()
        for url, (name, run) in answers.items():
            present.add(name)
            self._by_name.pop(url, None)
            known = self._by_name.get(name)
            if known is None or known.run != run or known.lost_ns is not None:
                self._change(now_ns)
            joined_ns = known.joined_ns if known is not None else now_ns if self.met else 0
            left_ns = known.left_ns if known is not None and known.run == run else None
            self._by_name[name] = Peer(name, run, url, joined_ns, left_ns=left_ns)
        for name, peer in self._by_name.items():
            if name not in present and peer.lost_ns is None:
                peer.lost_ns = now_ns
                self._change(now_ns)
        lost = [name for name, peer in self._by_name.items() if peer.lost_ns is not None]
        for name in lost[: max(0, len(lost) - _MOST_LOST)]:
            del self._by_name[name]
        self.met = True

    @property
    def changed_ns(self) -> int:
        """When the number of monitors last changed, as far as this one knows: at first when it began itself."""
        return self._changes[-1]

    def _change(self, now_ns: int) -> None:
        if now_ns > self._changes[-1]:
            self._changes.append(now_ns)
        while len(self._changes) > _MOST_CHANGES:
            self._forgotten_ns = self._changes.pop(0)

    def _date_back(self, now_ns: int) -> None:
        """After the clock was set back, date what lies ahead of it as of now: else no change would count meanwhile."""
        if max(self.changed_ns, self.begun_ns) <= now_ns:
            return
        self._changes = sorted({min(each, now_ns) for each in self._changes})
        self.begun_ns, self._forgotten_ns = min(self.begun_ns, now_ns), min(self._forgotten_ns, now_ns)
        for peer in self._by_name.values():
            peer.joined_ns = min(peer.joined_ns, now_ns)
            peer.lost_ns = None if peer.lost_ns is None else min(peer.lost_ns, now_ns)
            peer.left_ns = None if peer.left_ns is None else min(peer.left_ns, now_ns)

    def leaves(self, name: str, now_ns: int) -> None:
        """A monitor has reported that it is going to end: its traces go elsewhere from now on."""
        if name in self._by_name:
            self._change(now_ns)

    def left(self, name: str, now_ns: int) -> None:
        """A monitor has reported that it ends and holds nothing more."""
        if name in self._by_name:
            self._by_name[name].left_ns = now_ns
            self._change(now_ns)

    def named(self, name: str) -> Peer | None:
        """The monitor of this name."""
        return self._by_name.get(name)

    def may_lack(self, start_ns: int, opened_ns: int, *, whole: bool) -> bool:
        """Whether another monitor may hold spans of a trace.

        Consistent hashing moves traces to a monitor that comes, and from one that goes. So a trace that was whole here
        was elsewhere only if something changed between its start and its first span here, if this monitor was away
        since, or if one came after that and is gone.

        Args:
            start_ns: When its first span here began.
            opened_ns: When that span came here.
            whole: Whether its root is here, and no parent is missing.
        """
        if start_ns >= self.changed_ns + self.settle_ns:
            return False
        last_ns = opened_ns + self.settle_ns
        return (
            not whole
            or start_ns < self._forgotten_ns
            or any(start_ns - self.settle_ns < changed_ns < last_ns for changed_ns in self._changes)
            or opened_ns < self.begun_ns
            or any(
                (peer.lost_ns is not None or peer.left_ns is not None) and peer.joined_ns > opened_ns - self.settle_ns
                for peer in self._by_name.values()
            )
        )

    def holders(self, start_ns: int, now_ns: int) -> list[Peer]:
        """The monitors that may hold spans of a trace that began then, and are to be asked.

        A lost monitor holds spans of earlier traces. One that left in order passed everything on, possibly with a
        delay.
        """
        return [peer for peer in self._by_name.values() if self._may_hold(peer, start_ns, now_ns)]

    def _may_hold(self, peer: Peer, start_ns: int, now_ns: int) -> bool:
        if peer.left_ns is not None:
            return now_ns < peer.left_ns + self.settle_ns
        return peer.lost_ns is None or start_ns < peer.lost_ns + self.settle_ns
