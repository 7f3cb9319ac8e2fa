"""Agreement: how far verdicts agree with people's, and what people would have passed; a row of the rubric's board.

Every process knows the labels of its project: of several, the one that finds least agreement is shown.
"""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.dashboards.rules import recordings as people
from sidejudge.dashboards.rules import recordings as r
from sidejudge.integrations.prometheus.families import Family
from sidejudge.scoring.alerts.declaration import Declaration

from .board import GREEN, GREY, RED, DashboardRow, Panel, Query, series, stat
from .words import SITE, WHERE

_RUBRIC = f'{SITE},rubric=~"$rubric"'
_PASS = f'{_RUBRIC},metric="pass"'
_HERE = f'{WHERE},rubric=~"$rubric"'
_OF = "{{service}} {{environment}}"


def agreement(declared: Declaration) -> DashboardRow:
    """The row, under this declaration."""
    window, least, limit = r.window_of(declared), declared.policy.min_samples, declared.limits.agreement
    return DashboardRow(
        title="Agreement with people",
        panels=(
            stat(
                "Labels compared",
                f"Labels of people that were compared with the verdict on the same. Below {least:g} no alert on "
                "agreement fires.",
                _least(f.AGREEMENT_PAIRS), decimals=0, width=4, height=5, steps=((None, GREY), (least, GREEN)),
            ),
            stat(
                "Kappa", "Cohen's kappa of people and verdicts: agreement beyond chance, 1 at most.",
                _least(f.AGREEMENT_KAPPA), decimals=2, width=5, height=5, steps=((None, RED), (limit, GREEN)),
            ),
            stat(
                "People would have passed",
                f"Pass ratio of the last {window}, corrected for the judge's errors on labelled traces: the smallest "
                "of the services.",
                Query(expr=f"min({people.corrected(window)}{{{_HERE}}})"),
                unit="percentunit", decimals=1, width=7, height=5,
            ),
            stat(
                "Corrected answers", "Answers that people corrected, and those of them that had passed.",
                _least(f.LABELS_CORRECTIONS, "corrected", of=_RUBRIC),
                _least(f.LABELS_CORRECTED_PASSES, "had passed", of=_RUBRIC), decimals=0, width=8, height=5,
            ),
            Panel(
                title="Kappa with its bounds, and AC1", kind="timeseries", unit="short", minimum=-1, maximum=1,
                decimals=2, dashed=True, steps=((None, RED), (limit, GREEN)),
                description="Two-sided 95 %. The alert goes by the upper bound. AC1 stays steady where nearly "
                "everything passes.",
                queries=(
                    _least(f.AGREEMENT_KAPPA_UPPER, "upper bound"), _least(f.AGREEMENT_KAPPA, "kappa"),
                    _least(f.AGREEMENT_KAPPA_LOWER, "lower bound"), _least(f.AGREEMENT_AC1, "AC1"),
                ),
            ),
            series(
                "Pass ratio as people would have found it",
                "The fleet's pass ratio beside the same corrected for the judge's errors (Rogan-Gladen); bounds, "
                "two-sided 95 %, are those of the process whose are widest.",
                "percentunit",
                Query(
                    expr=f"max by (service, environment) ({f.PASS_CORRECTED_UPPER_RATIO.name}{{{_HERE}}})",
                    legend=f"upper bound · {_OF}",
                ),
                Query(expr=f"{people.corrected(window)}{{{_HERE}}}", legend=f"corrected · {_OF}"),
                Query(
                    expr=f"min by (service, environment) ({f.PASS_CORRECTED_LOWER_RATIO.name}{{{_HERE}}})",
                    legend=f"lower bound · {_OF}",
                ),
                Query(expr=f"{r.pass_ratio(window)}{{{_HERE}}}", legend=f"as judged · {_OF}"),
                maximum=1,
            ),
            series(
                "The judge's errors on labelled traces",
                "Of what people pass the share that passes here, and of what they fail the share that fails here.",
                "percentunit",
                Query(expr=f"min({people.TRUE_POSITIVE}{{{_RUBRIC}}})", legend="passes kept"),
                Query(expr=f"min({people.TRUE_NEGATIVE}{{{_RUBRIC}}})", legend="failures found"),
                maximum=1,
            ),
            Panel(
                title="Agreement by metric", kind="bargauge", unit="percentunit", minimum=0, maximum=1,
                description="Share of labels with which the value agrees, by metric; pass is the verdict itself.",
                queries=(
                    Query(
                        expr=f"min by (metric) ({f.AGREEMENT_RAW.name}{{{_RUBRIC}}})", legend="{{metric}}"
                    ),
                ),
            ),
        ),
    )  # fmt: skip


def _least(family: Family, legend: str = "__auto", *, of: str = _PASS) -> Query:
    return Query(expr=f"min({family.name}{{{of}}})", legend=legend)
