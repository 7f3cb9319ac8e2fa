"""Judge choice: a configuration comes in; the judges that answer for each metric of each rubric go out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from sidejudge.scoring.metrics.judge_metrics import parse_judge_config
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.verdict.rubric import Rubric

from . import Config
from .evaluators import CascadeSection, JudgeSection, NamedJudgeSection
from .section import DEFAULT_JUDGE


class LearnedThresholds(Protocol):
    """Learned thresholds for asking the next judge of a cascade."""

    def policy(self, rubric: str, stated: CascadeSection) -> CascadeSection:
        """The thresholds in force for a rubric."""


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The judge of a metric: the one named for the metric, else for its rubric, else the default judge.

    Several names form a cascade, the cheapest judge first; ``cascade`` states when the next one is asked, with the
    ``learned`` thresholds, if any.
    """

    by_rubric: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by_metric: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    cascade: CascadeSection = field(default_factory=CascadeSection)
    learned: LearnedThresholds | None = None

    def of(self, rubric: str, metric: str) -> tuple[str, ...]:
        """The names of the judges, one at least."""
        return self.by_metric.get((rubric, metric)) or self.by_rubric.get(rubric) or (DEFAULT_JUDGE,)

    @property
    def has_cascades(self) -> bool:
        """Whether any metric has several judges."""
        return any(len(names) > 1 for names in (*self.by_rubric.values(), *self.by_metric.values()))


ONE_JUDGE: Final = JudgeChoice()
"""The default judge for everything."""


def judge_choice(config: Config) -> JudgeChoice:
    """The choice that a configuration makes. A rubric that extends another has the judges of that one."""
    by_rubric: dict[str, tuple[str, ...]] = {}
    by_metric: dict[tuple[str, str], tuple[str, ...]] = {}
    model = model_of_agent(config)
    for name in config.rubrics:
        for each in reversed(_ancestry(config, name)):
            section = config.rubrics.get(each)
            if section is None:
                continue
            if each == "agent" and model is not None:
                by_rubric[name] = (model,)
            if section.judge:
                by_rubric[name] = section.judge
            by_metric |= {(name, metric): judges for metric, judges in section.metric_judges.items()}
    return JudgeChoice(by_rubric, by_metric, config.evaluators.cascade)


def _ancestry(config: Config, name: str) -> list[str]:
    """The rubric and those that it extends, the nearest first."""
    found: list[str] = []
    each: str | None = name
    while each is not None and each not in found:
        found.append(each)
        section = config.rubrics.get(each)
        each = section.extends if section is not None else None
    return found


def model_of_agent(config: Config) -> str | None:
    """``provider/model`` of ``rubrics.agent.judge_config``; missing parts are the judge's own. None: no change."""
    change, judge = config.rubrics.get("agent"), config.evaluators.judge
    if change is None or change.judge_config is None or judge is None:
        return None
    own = parse_judge_config(change.judge_config)
    if own.model is None and own.provider is None:
        return None
    provider, _, model = judge.model.partition("/")
    named = own.model if own.model is not None and own.provider is None and "/" in own.model else None
    named = named or f"{own.provider or provider}/{own.model or model}"
    return named if named != judge.model else None


def judge_sections(config: Config) -> dict[str, JudgeSection]:
    """Every judge of a configuration by name, the default one first, with missing keys filled in."""
    judge = config.evaluators.judge
    if judge is None:
        return {}
    found = {DEFAULT_JUDGE: judge}
    found |= {name: section.beside(judge) for name, section in config.evaluators.judges.items()}
    model = model_of_agent(config)
    if model is not None:
        found[model] = NamedJudgeSection(model=model).beside(judge)
    return found


def judge_name(models: Sequence[str], rule: str) -> str:
    """A model or a panel, as verdicts name it."""
    return models[0] if len(models) == 1 else f"{rule} of {', '.join(models)}"


def judges_named(config: Config, rubrics: Iterable[Rubric]) -> dict[str, tuple[str, ...]]:
    """By rubric, the judges that may answer for its metrics, as verdicts name them; none where none is configured."""
    choice = judge_choice(config)
    names = {
        name: judge_name((section.model, *section.panel), section.panel_rule)
        for name, section in judge_sections(config).items()
    }
    return {
        rubric.id: tuple(
            dict.fromkeys(
                names[judge]
                for metric in rubric.metrics
                if Method.JUDGE in metric.methods
                for judge in choice.of(rubric.id, metric.id)
                if judge in names
            )
        )
        for rubric in rubrics
    }
