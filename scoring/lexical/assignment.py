"""One-to-one matching of as many items as possible: each on either side serves at most one of the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def maximum_matching(edges: Sequence[Collection[int]]) -> dict[int, int]:
    """A largest one-to-one matching, left → right. ``edges[i]`` are the right items that left item ``i`` fits.

    Augmenting paths, breadth first: O(items × edges), and no recursion however long the lists are.

    >>> maximum_matching([(0, 1), (0,)])
    {1: 0, 0: 1}
    """
    partner: dict[int, int] = {}
    for start in range(len(edges)):
        end, came_from = _free_right(start, edges, partner)
        while end is not None:
            left, end_before = came_from[end]
            partner[end] = left
            end = end_before
    return {left: right for right, left in partner.items()}


def _free_right(
    start: int, edges: Sequence[Collection[int]], partner: dict[int, int]
) -> tuple[int | None, dict[int, tuple[int, int | None]]]:
    """A free right item at the end of an alternating path, and for each right item how it was reached.

    That is: by which left item, and through which right item that left item would have to give up.
    """
    came_from: dict[int, tuple[int, int | None]] = {}
    queue: list[tuple[int, int | None]] = [(start, None)]
    for left, given_up in queue:
        for right in edges[left]:
            if right in came_from:
                continue
            came_from[right] = (left, given_up)
            if right not in partner:
                return right, came_from
            queue.append((partner[right], right))
    return None, came_from
