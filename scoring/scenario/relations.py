"""Relations between calls: calls that must or must not come together, before or after each other.

The templates are those of DECLARE (Pesic, van der Aalst 2006): precedence, response, not succession, exclusive choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, ReasonPart, part, together

Pairs: TypeAlias = tuple[tuple[str, str], ...]
PAIRED: Final = ("before", "after", "not_after", "not_both")
"""Keys of a scenario that hold pairs of tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """The relations between calls that a scenario requires.

    ``any_of``: of each group at least one is called. ``before``: in ``(a, b)``, a is called before the first call of b.
    ``after``: after the last a, b is called. ``not_after``: b is not called after a. ``not_both``: not both.
    """

    any_of: tuple[tuple[str, ...], ...] = ()
    before: Pairs = ()
    after: Pairs = ()
    not_after: Pairs = ()
    not_both: Pairs = ()

    def __bool__(self) -> bool:
        return bool(self.any_of or self.before or self.after or self.not_after or self.not_both)

    @property
    def named(self) -> set[str]:
        """Every tool that a relation names."""
        pairs = (*self.before, *self.after, *self.not_after, *self.not_both)
        return {name for group in (*self.any_of, *pairs) for name in group}

    def broken(self, called: Sequence[str]) -> Iterator[Reason]:
        """The relations that these calls break, in words.

        >>> list(Relations(before=(("verify", "refund"),)).broken(["refund", "verify"]))
        ['refund was called without verify before it']
        """
        return (why for why, _ in self.breaches(called))

    def breaches(self, called: Sequence[str]) -> Iterator[tuple[Reason, tuple[str, ...]]]:
        """The same, each with the tools one more call of which may mend it; none where the calls alone break it."""
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for index, name in enumerate(called):
            first.setdefault(name, index)
            last[name] = index
        for group in self.any_of:
            if first.keys().isdisjoint(group):
                tools = together((part(label(each)) for each in group), ", ")
                yield Reason("none of {tools} was called", tools=tools), group
        for key in PAIRED:
            for a, b in getattr(self, key):
                if _BREAKS[key](first, last, a, b):
                    lacking = {"before": (a,), "after": (b,)}.get(key, ())
                    yield _BROKEN[key](part(label(a)), part(label(b))), lacking


_Places: TypeAlias = Mapping[str, int]
_BREAKS: Final[Mapping[str, Callable[[_Places, _Places, str, str], bool]]] = {
    "before": lambda first, _, a, b: b in first and not (a in first and first[a] < first[b]),
    "after": lambda _, last, a, b: a in last and last.get(b, -1) <= last[a],
    "not_after": lambda first, last, a, b: a in first and last.get(b, -1) > first[a],
    "not_both": lambda first, _, a, b: a in first and b in first,
}
"""Whether a pair is broken, given where each tool was called first and last."""
_BROKEN: Final[Mapping[str, Callable[[ReasonPart, ReasonPart], Reason]]] = {
    "before": lambda a, b: Reason("{b} was called without {a} before it", a=a, b=b),
    "after": lambda a, b: Reason("{b} did not follow {a}", a=a, b=b),
    "not_after": lambda a, b: Reason("{b} was called after {a}", a=a, b=b),
    "not_both": lambda a, b: Reason("{a} and {b} were both called", a=a, b=b),
}
NO_RELATIONS: Final = Relations()
