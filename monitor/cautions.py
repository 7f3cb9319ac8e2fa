"""Cautions: what a valid configuration asks for and will not get."""

from __future__ import annotations

from collections.abc import Iterator

from scoring.result import Method
from scoring.rubrics import RUBRICS

from .config import Config


def cautions(config: Config) -> Iterator[tuple[str, str]]:
    """(cause, remedy) of each. This version has no judge: what only a judge can tell stays unavailable."""
    for index, route in enumerate(config.routes):
        for name in route.rubrics:
            missing = only_judged(name)
            if missing:
                cause = f"{_all(missing)} a judge, which this version does not have"
                yield (
                    f"routes[{index}].rubrics: {name}: {cause}, so that these verdicts are incomplete",
                    "expect incomplete verdicts, or take the rubric out of the route",
                )


def only_judged(name: str) -> list[str]:
    """Weighed metrics of a rubric that nobody but a judge can tell."""
    return [
        criterion.metric.id
        for criterion in RUBRICS[name].criteria
        if criterion.weight and tuple(criterion.metric.methods) == (Method.JUDGE,)
    ]


def _all(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last} need" if others else f"{last} needs"
