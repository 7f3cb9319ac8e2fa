"""The canonical definitions of seed 001: nine metrics in four tiers, and what each score means.

The prompts in ``scoring/prompts/agent`` state them; the rubric ``agent`` and ``GET /config/available-metrics`` are read
from these. ``JudgeConfig`` chooses among them, with weights, the model, and when a case passes::

    metrics:                                       # null or empty: the eight defaults with their default weights
      - {metric: tool_routing, weight: 1.0}        # weight: null takes the metric's default
      - {metric: task_completion, weight: 0.5}     # not among the defaults: needs a weight
    pass_threshold: 75.0                           # overall score, 0-100, from which a case passes
    model: null                                    # judge's model, null: the judge's own
    provider: null                                 # judge's provider, likewise
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.nearest import nearest
from sidejudge.scoring.questions.question import prompt_text
from sidejudge.scoring.trace.span import Json

MAX_SCORE = 5
ACCEPTABLE_SCORE = 4
"""From here up a metric is acceptable or better: no failure code, no turns (rubrics §8)."""


class Tier(StrEnum):
    """The part of a conversation that a metric judges."""

    EXECUTION = "execution"
    """Did the agent use the right tools correctly?"""
    KNOWLEDGE = "knowledge"
    """Did the agent stay grounded and follow rules?"""
    PROCESS = "process"
    """Did the agent manage the conversation well?"""
    DELIVERY = "delivery"
    """Was the response natural and TTS-friendly?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A metric as the seed defines it. ``levels`` are the criteria of its scores, best first.

    A metric that is not among the defaults must be selected with a weight.
    """

    name: str
    tier: Tier
    default_weight: float
    description: str
    levels: tuple[tuple[str, str], ...]

    @property
    def score_type(self) -> Literal["scored", "binary"]:
        """Whether its levels are points, or pass and fail."""
        return "scored" if len(self.levels) > 2 else "binary"

    @property
    def include_in_defaults(self) -> bool:
        """Whether it is selected where nothing is."""
        return self.default_weight > 0

    @property
    def display_name(self) -> str:
        """The name in words, as people read it."""
        return self.name.replace("_", " ").title()

    @property
    def rubric(self) -> str:
        """The scores and their criteria, a line each."""
        return "\n".join(f"{score}: {criteria}" for score, criteria in self.levels)

    def to_json(self) -> dict[str, object]:
        """The definition in the shape of the seed's endpoint."""
        shown = ("name", "display_name", "description", "tier", "default_weight", "score_type", "rubric")
        return {name: getattr(self, name) for name in (*shown, "include_in_defaults")}


_WEIGHTS = {
    "tool_routing": 0.15, "parameter_extraction": 0.15, "result_interpretation": 0.15, "grounding_fidelity": 0.125,
    "instruction_compliance": 0.125, "information_gathering": 0.10, "conversation_management": 0.10,
    "response_delivery": 0.10, "task_completion": 0.0,
}  # fmt: skip
"""Every metric, in the seed's order, with its default weight."""


def _definition(name: str) -> Definition:
    """What the prompt of a metric states: a line with its tier and description, then a line for each level."""
    _, head, *lines = prompt_text(f"agent/{name}").splitlines()
    tier, _, description = head.partition(", tier ")[2].partition(": ")
    levels = (line.partition(": ") for line in lines if not line.startswith('"'))
    return Definition(
        name=name, tier=Tier(tier), default_weight=_WEIGHTS[name], description=description,
        levels=tuple((score, criteria) for score, _, criteria in levels),
    )  # fmt: skip


DEFINITIONS: Mapping[str, Definition] = MappingProxyType({name: _definition(name) for name in _WEIGHTS})
"""Every metric by its id, in the seed's order."""


def available_metrics() -> dict[str, object]:
    """All registered metrics, opt-in included, in the seed's shape: ``{"data": [...], "count": 9}``."""
    return {"data": [definition.to_json() for definition in DEFINITIONS.values()], "count": len(DEFINITIONS)}


DEFAULT_PASS_THRESHOLD = 75.0
FULL_SCORE = 100.0
_LARGEST = 1e300
_FIELDS = ("metrics", "pass_threshold", "model", "provider")
_SELECTION_FIELDS = ("metric", "weight")


class JudgeConfigError(SidejudgeError, ValueError):
    """The configuration is invalid; ``problems`` lists every fault as ``field.path: what is wrong``."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("judge config: " + "; ".join(problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSelection:
    """A selected metric; ``weight`` None takes its default. Weights are relative: they are renormalised."""

    metric: str
    weight: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeConfig:
    """How conversations are judged. ``JudgeConfigError`` lists everything that is wrong at once."""

    metrics: tuple[MetricSelection, ...] | None = None
    pass_threshold: float = DEFAULT_PASS_THRESHOLD
    model: str | None = None
    provider: str | None = None

    def __post_init__(self) -> None:
        selected = [(f"metrics[{index}]", each) for index, each in enumerate(self.metrics or ())]
        problems = [*_selection_problems(selected), *_threshold_problems(self.pass_threshold)]
        if problems:
            raise JudgeConfigError(problems)

    def weights(self) -> dict[str, float]:
        """Weight by metric id, in the order of the definitions: what was selected, renormalised to sum to 1.

        >>> chosen = (MetricSelection(metric="task_completion", weight=0.5), MetricSelection(metric="tool_routing"))
        >>> {name: round(weight, 3) for name, weight in JudgeConfig(metrics=chosen).weights().items()}
        {'tool_routing': 0.231, 'task_completion': 0.769}
        """
        if self.metrics:
            chosen = {selected.metric: _weight(selected) for selected in self.metrics}
        else:
            chosen = {name: each.default_weight for name, each in DEFINITIONS.items() if each.include_in_defaults}
        total = math.fsum(chosen.values())
        return {name: chosen[name] / total for name in DEFINITIONS if name in chosen}


def parse_judge_config(data: Json) -> JudgeConfig:
    """Read a configuration from JSON or YAML values, types and all; nothing is converted."""
    if not isinstance(data, dict):
        raise JudgeConfigError(["must be an object with metrics, pass_threshold, model or provider"])
    problems = [f"{key[:60]}: unknown key{nearest(key, _FIELDS)}" for key in data if key not in _FIELDS]
    selected = _read_metrics(data.get("metrics"), problems)
    problems += _selection_problems(selected)
    threshold = data.get("pass_threshold", DEFAULT_PASS_THRESHOLD)
    problems += _threshold_problems(threshold)
    model, provider = (_read_name(data, key, problems) for key in ("model", "provider"))
    if problems or not isinstance(threshold, int | float):
        raise JudgeConfigError(problems)
    metrics = tuple(selection for _, selection in selected) or None
    return JudgeConfig(metrics=metrics, pass_threshold=threshold, model=model, provider=provider)


def _read_metrics(value: Json, problems: list[str]) -> list[tuple[str, MetricSelection]]:
    """Selections with the path of each; one that cannot be read is reported and left out."""
    if value is None:
        return []
    if not isinstance(value, list):
        problems.append("metrics: must be a list of {metric, weight}, or null for the defaults")
        return []
    read = ((path, _read_selection(one, path, problems)) for path, one in _numbered(value))
    return [(path, selection) for path, selection in read if selection is not None]


def _numbered(value: list[Json]) -> Iterator[tuple[str, Json]]:
    return ((f"metrics[{index}]", one) for index, one in enumerate(value))


def _read_selection(value: Json, path: str, problems: list[str]) -> MetricSelection | None:
    if not isinstance(value, dict):
        problems.append(f"{path}: must be an object {{metric, weight}}")
        return None
    problems += [
        f"{path}.{key[:60]}: unknown key{nearest(key, _SELECTION_FIELDS)}"
        for key in value
        if key not in _SELECTION_FIELDS
    ]
    metric, weight = value.get("metric"), value.get("weight")
    if not isinstance(metric, str) or not metric:
        problems.append(f"{path}.metric: must be the id of a metric{_known('')}")
        return None
    if weight is not None and not _is_number(weight):
        problems.append(f"{path}.weight: must be a number of at least 0")
        weight = 1.0  # the id is still worth checking
    return MetricSelection(metric=metric, weight=weight if isinstance(weight, int | float) else None)


def _read_name(data: Mapping[str, Json], key: str, problems: list[str]) -> str | None:
    value = data.get(key)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        problems.append(f"{key}: must be a name, or null")
    return value if isinstance(value, str) else None


def _threshold_problems(value: object) -> list[str]:
    if isinstance(value, int | float) and _is_number(value) and 0 <= value <= FULL_SCORE:
        return []
    return [f"pass_threshold: must be a number from 0 to {FULL_SCORE:g}"]


def _selection_problems(selections: Sequence[tuple[str, MetricSelection]]) -> Iterator[str]:
    seen: set[str] = set()
    for path, selected in selections:
        name, weight = selected.metric, selected.weight
        if name not in DEFINITIONS:
            yield f"{path}.metric: unknown metric {name[:60]!r}{_known(name)}"
        elif name in seen:
            yield f"{path}.metric: {name} is selected twice"
        elif weight is None and not DEFINITIONS[name].include_in_defaults:
            yield f"{path}.weight: {name} needs an explicit weight (its default weight is 0)"
        if weight is not None and not (_is_number(weight) and weight >= 0):
            yield f"{path}.weight: must be a number of at least 0"
        seen.add(name)
    if selections and all(selected.weight == 0 for _, selected in selections):
        yield "metrics: at least one weight must be above 0"


def _weight(selected: MetricSelection) -> float:
    return DEFINITIONS[selected.metric].default_weight if selected.weight is None else selected.weight


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def _known(name: str) -> str:
    near = difflib.get_close_matches(name[:60], list(DEFINITIONS), 1)
    return (f"; did you mean {near[0]}?" if near else "") + f"; known are {', '.join(DEFINITIONS)}"
