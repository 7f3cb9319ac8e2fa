"""Differences: what runs do now that a scenario does not state, and what it states that they no longer do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.trace.span import Json

_LISTS = (
    "agents_should_include", "tools_should_include", "tools_may_include", "tools_should_exclude", "before", "after",
    "not_after", "not_both", "any_of",
)  # fmt: skip
_MAPS = ("max_calls", "min_calls", "arguments_schema", "values_from")


@dataclass(frozen=True, slots=True)
class Differences:
    """Lines that are new, that are gone, and that are others now; each ``key: what``."""

    new: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.changed)


def differences(before: Mapping[str, Json], now: Mapping[str, Json]) -> Differences:
    """Two scenarios of one group beside each other."""
    new: list[str] = []
    gone: list[str] = []
    changed: list[str] = []
    for key in _LISTS:
        old, learned = _listed(before.get(key)), _listed(now.get(key))
        new += [f"{key}: {_words(one)}" for one in learned if one not in old]
        gone += [f"{key}: {_words(one)}" for one in old if one not in learned]
    for key in _MAPS:
        held, learned_map = _mapped(before.get(key)), _mapped(now.get(key))
        new += [f"{key}: {name}" for name in learned_map if name not in held]
        gone += [f"{key}: {name}" for name in held if name not in learned_map]
        changed += [f"{key}: {name}" for name in held if name in learned_map and held[name] != learned_map[name]]
    if isinstance(now.get("signs"), dict) or isinstance(before.get("signs"), dict):
        signs = differences(_mapped(before.get("signs")), _mapped(now.get("signs")))
        new += [f"signs: {line}" for line in signs.new]
        gone += [f"signs: {line}" for line in signs.gone]
        changed += [f"signs: {line}" for line in signs.changed]
    return Differences(tuple(new), tuple(gone), tuple(changed))


def _listed(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else []


def _mapped(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _words(one: Json) -> str:
    return " → ".join(map(str, one)) if isinstance(one, list) else str(one)
