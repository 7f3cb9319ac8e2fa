"""What was seen in traces and not understood, client by client, with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .span import Unread
from .trace import Trace


def unread_counts(traces: Iterable[Trace]) -> list[tuple[Unread, int]]:
    """Each name once a client, with the number of spans that have it; by client, the most frequent first.

    Of one name several shapes may be seen: the first stands for them.
    """
    first: dict[tuple[str, str], Unread] = {}
    counted: Counter[tuple[str, str]] = Counter()
    for trace in traces:
        for unread in (each for span in trace.spans for each in span.unread):
            key = unread.client, unread.source
            first.setdefault(key, unread)
            counted[key] += 1
    return [(first[key], count) for key, count in sorted(counted.items(), key=lambda item: (item[0][0], -item[1]))]
