"""Score configs: Langfuse's declarations of scores by name, found and reused, or created once.

Their names are not unique there, so creating without looking would pile them up. A score that names a config which does
not allow it is accepted and then dropped without a word; so a config is only named where it allows the value, and one
that somebody has narrowed is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.trace.jsontext import objects
from sidejudge.scoring.verdict.verdict import State

from .client import Langfuse
from .declared_scores import Declared
from .errors import LangfuseError
from .pages import Row, by_number
from .scores import ScoreOfLangfuse

_MAX_DESCRIPTION: Final = 500
_FORMER_STATES: Final = frozenset(state.value for state in State)
"""Categories of the state up to 0.1.0."""


@dataclass(frozen=True, slots=True)
class OutdatedConfig:
    """A config that differs from what is declared. ``unused``: scores do not name it."""

    name: str
    why: str
    unused: bool


class ScoreConfigs:
    """The configs of one project. ``load`` before the first use, and again when something may have changed."""

    def __init__(self, langfuse: Langfuse, known: Iterable[Declared]) -> None:
        self._langfuse = langfuse
        self._declared = {each.name: each for each in known}
        self._ids: dict[str, str | None] = {}
        self._found: list[Row] | None = None

    def declare(self, more: Iterable[Declared]) -> None:
        """Know further scores."""
        self._declared |= {each.name: each for each in more}

    def forget(self) -> None:
        """Look again before the next use: one of them may have been archived or changed."""
        self._ids, self._found = {}, None

    async def id_of(self, score: ScoreOfLangfuse) -> str | None:
        """The config that a score may name; None for none.

        Raises ``LangfuseError`` for temporary failures; where configs are refused there is none, and scores go without.
        """
        wanted = self._declared.get(str(score["name"]))
        if wanted is None or wanted.data_type != score["dataType"] or not wanted.allows(score["value"]):
            return None
        if wanted.name not in self._ids:
            try:
                self._ids[wanted.name] = await self._find_or_create(wanted)
            except LangfuseError as error:
                if error.kind.transient:
                    raise
                self._ids[wanted.name] = None
        return self._ids[wanted.name]

    async def outdated(self) -> list[OutdatedConfig]:
        """Configs of the declared names that are not as declared. Raises ``LangfuseError``."""
        found = [each for each in await self._list() if not each.get("isArchived")]
        compared = (_outdated(each, wanted) for each in found if (wanted := self._declared.get(str(each.get("name")))))
        return [each for each in compared if each is not None]

    async def _find_or_create(self, wanted: Declared) -> str | None:
        if self._found is None:
            self._found = await self._list()
        named = [
            each
            for each in self._found
            if each.get("name") == wanted.name and not each.get("isArchived") and not _superseded(each, wanted)
        ]
        # The oldest that allows what is declared: several monitors then come to the same.
        fitting = sorted((each for each in named if _fits(each, wanted)), key=lambda each: str(each.get("createdAt")))
        if fitting:
            return str(fitting[0]["id"])
        if named:
            return None
        made = (await self._langfuse.post("score-configs", _body(wanted))).body
        return str(made["id"]) if isinstance(made, Mapping) and made.get("id") else None

    async def _list(self) -> list[Row]:
        return [row async for rows in by_number(self._langfuse, "score-configs") for row in rows]


def _superseded(config: Row, wanted: Declared) -> bool:
    """Whether a config declares the score as an earlier version wrote it: another type, or the names of states."""
    if config.get("dataType") != wanted.data_type:
        return True
    labels = _labels(config)
    return bool(labels) and labels <= _FORMER_STATES and labels.isdisjoint(wanted.categories)


def _outdated(config: Row, wanted: Declared) -> OutdatedConfig | None:
    kind = config.get("dataType")
    if kind != wanted.data_type:
        return OutdatedConfig(wanted.name, f"it is of type {label(str(kind))}, its scores are {wanted.data_type}", True)
    if not _fits(config, wanted):
        return OutdatedConfig(wanted.name, "it does not allow every value that the score may have", True)
    if config.get("description") != _body(wanted)["description"]:
        return OutdatedConfig(wanted.name, "its description is another than ours", False)
    return None


def _labels(config: Row) -> set[str]:
    return {str(each.get("label")) for each in objects(config.get("categories"))}


def _fits(config: Row, wanted: Declared) -> bool:
    if config.get("dataType") != wanted.data_type:
        return False
    low, high = config.get("minValue"), config.get("maxValue")
    if low is not None and (wanted.low is None or not isinstance(low, int | float) or low > wanted.low):
        return False
    if high is not None and (wanted.high is None or not isinstance(high, int | float) or high < wanted.high):
        return False
    return set(wanted.categories) <= _labels(config)


def _body(wanted: Declared) -> dict[str, object]:
    body: dict[str, object] = {
        "name": wanted.name, "dataType": wanted.data_type, "description": label(wanted.description, _MAX_DESCRIPTION),
    }  # fmt: skip
    if wanted.low is not None:
        body["minValue"] = wanted.low
    if wanted.high is not None:
        body["maxValue"] = wanted.high
    if wanted.categories:
        body["categories"] = [{"label": name, "value": index} for index, name in enumerate(wanted.categories)]
    return body
