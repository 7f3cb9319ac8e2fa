"""The settings of judges that the values of a rubric depend on, beside its version.

Each verdict of a run carries those of its rubric, so that a run that goes on is not mixed with one by another judge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, TypeAlias

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.judge_choice import judge_choice, judge_sections
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.config.section import DEFAULT_JUDGE, Section
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.trace.span import Json, JsonRecord
from sidejudge.scoring.verdict.rubric import Rubric, all_criteria

JudgedWith: TypeAlias = Mapping[str, Json]
"""Values by the key of the configuration; a key with its default value is left out. ``prompts`` is a digest of them.

Addresses, keys, limits and prices are no part of it: they change no answer.
"""
JUDGED_WITH: Final = "judged_with"
"""The field of a verdict that holds them."""

_OF_A_JUDGE: Final = {
    "model", "panel", "panel_rule", "temperature", "top_p", "max_tokens", "seed", "structured",
    "context_tokens", "outline",
}  # fmt: skip
_OF_ALL: Final = {"redact", "redact_patterns"}
_DIGITS: Final = 16


def judged_with(config: Config) -> dict[str, JudgedWith]:
    """The settings by rubric; nothing for one that no judge answers, and where none is configured."""
    return {name: _of(config, rubric) for name, rubric in configured(config).items()}


def stated_settings(settings: JudgedWith) -> JsonRecord:
    """The field of a verdict; none where there is nothing to state."""
    return {JUDGED_WITH: settings} if settings else {}


def changed(was: object, now: object) -> str | None:
    """The first changed setting, with both values; None without a change."""
    before, after = (stated if isinstance(stated, Mapping) else {} for stated in (was, now))
    for key in dict.fromkeys((*after, *before)):
        if before.get(key) != after.get(key):
            return f"{key} has changed (was {_shown(before.get(key))}, now {_shown(after.get(key))})"
    return None


def _shown(value: object) -> str:
    return "not set" if value is None else repr(value)[:100]


def _of(config: Config, rubric: Rubric) -> JudgedWith:
    choice, judges = judge_choice(config), judge_sections(config)
    judged = [c.metric.id for c in all_criteria(rubric) if Method.JUDGE in c.metric.methods]
    if not judged or not judges:
        return {}
    asked = dict.fromkeys(name for metric in judged for name in choice.of(rubric.id, metric))
    found: dict[str, Json] = {}
    for name in asked:
        where = "evaluators.judge" if name == DEFAULT_JUDGE else f"evaluators.judges.{name}"
        found |= _set(judges[name], where, _OF_A_JUDGE)
    found |= _set(judges[DEFAULT_JUDGE], "evaluators.judge", _OF_ALL)
    found |= _set(config.evaluators, "evaluators", {"order"})
    if named := choice.by_rubric.get(rubric.id):
        found[f"rubrics.{rubric.id}.judge"] = list(named)
    for (of, metric), names in choice.by_metric.items():
        if of == rubric.id:
            found[f"rubrics.{rubric.id}.metric_judges.{metric}"] = list(names)
    if any(len(choice.of(rubric.id, metric)) > 1 for metric in judged):
        found |= _set(config.evaluators.cascade, "evaluators.cascade", None)
    return {**found, "prompts": _prompts()}


def _set(section: Section, where: str, keys: set[str] | None) -> JudgedWith:
    stated = section.model_dump(mode="json", include=keys, exclude_defaults=True)
    return {f"{where}.{key}": value for key, value in stated.items()}


@cache
def _prompts() -> str:
    """A digest of the prompts that this version of sidejudge asks with."""
    texts = b"\0".join(_texts(files("sidejudge.scoring").joinpath("prompts")))
    return hashlib.sha256(texts).hexdigest()[:_DIGITS]


def _texts(folder: Traversable) -> Iterator[bytes]:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _texts(each)
        elif each.name.endswith(".md") and each.name != "README.md":
            yield each.read_bytes()
