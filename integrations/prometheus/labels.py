"""Labels: values that come from traces, made fit to be label values: clean, short, and few, or those seen last."""

from __future__ import annotations

import logging
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from sidejudge.scoring.status.service_status import OTHER

log = logging.getLogger("sidejudge.metrics")

MAX_LENGTH = 128
"""Characters of a label value; longer ones are cut, so that one hostile name cannot fill a scrape."""


def clean(value: str) -> str:
    """The value without control, format and unassigned characters and stray white space, at most 128 characters.

    Surrogates and separators of lines and paragraphs go too: what is left prints on one line and encodes as UTF-8.
    """
    head = value[: MAX_LENGTH * 4]  # cleaning reads no more of a 10 MB name than could be kept of it
    if not (head.isascii() and head.isprintable()):
        head = "".join(c if unicodedata.category(c)[0] not in "CZ" else " " for c in head)
    text = " ".join(head.split())
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"


class LabelCap:
    """The first ``cap`` distinct values of one label, kept for good; all later ones are ``__other__``.

    Values that the configuration names are ``known``: they have their place beside the cap. The first value that does
    not fit is logged, once, with what to do about it.
    """

    def __init__(self, label: str, cap: int, known: Iterable[str] = ()) -> None:
        if cap < 1:
            raise ValueError(f"the cap of label {label!r} must be at least 1, got {cap}")
        self._label, self._cap = label, cap
        self._known = {value: clean(value) for value in known}
        self._values = set(self._known.values())
        self._room = cap
        self._warned = False

    def know(self, values: Iterable[str]) -> None:
        """Give further values of the configuration a place beside the cap."""
        self._known |= {value: clean(value) for value in values}
        self._values |= set(self._known.values())

    def bound(self, value: str | None, unknown: str) -> str:
        """The label value for ``value``; ``unknown`` when there is none."""
        raw = value or unknown
        known = self._known.get(raw)
        if known is not None:
            return known
        text = clean(raw) or unknown
        if text in self._values or text == OTHER:
            return text
        if self._room:
            self._room -= 1
            self._values.add(text)
            if len(raw) <= MAX_LENGTH:
                self._known[raw] = text
            return text
        if not self._warned:
            self._warned = True
            log.warning(
                "label %s has more than %d values; %r and all later ones are counted as %s. "
                "Raise metrics.label_cap, or give fewer names",
                self._label, self._cap, text, OTHER,
            )  # fmt: skip
        return OTHER


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
