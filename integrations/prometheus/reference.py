"""Reference: the page that describes every metric family, written from the declarations."""

from __future__ import annotations

from .exposition import ADDED_UP, ALL, COARSE, LEFT_OUT, LOST, ONLY
from .families import FAMILIES, LABELS, TRACES, Family

_HEAD = """\
# Metric families

Generated from `integrations/prometheus/families/`; do not edit.
`GET /metrics` serves them as OpenMetrics 1.0 (with exemplars) to those who
ask for it, else in the classic text format.

- Fleet-wide ratios are made of summed counters, never of averaged gauges. The pass ratio of all traffic is
  `1 - increase(failed weight) / increase(weight)`, the effective sample size
  `increase(weight)² / increase(squared weight)`.
- Counters count the *first* verdict on a trace. A revision by late spans replaces the verdict in the window, and with
  it the gauges; a counter cannot take back what it counted.
- Every series that the configuration lets one know is exported as 0 from the start, those of a service from its first
  trace on, those of a service and a rubric from their first verdict on. Histograms appear with their first observation.
- `metrics.detail: standard`, the default, has what rules, boards and documentation ask for. `full` has also the
  families that say so below, services where `standard` adds them up as `__all__`, zeros of all statuses and reasons,
  and all zeros from a service's first trace on.
- A number that is not known is absent, never 0 and never NaN.
- A label holds at most `metrics.label_cap` values (default 50) that came from traces; later ones are counted as
  `__other__`, with one warning in the log. An application's versions are those seen last: a new one gets the place of
  the one not seen for longest, whose series end, unless all were seen within 6 hours.
  In a fleet the statuses of services that only other monitors judge have as many values of their own.
- Combinations of service and environment are limited to four times as many.
  Gauges of `__other__` are those of the window with the worst status behind it, so that its alert is raised: which
  one it is, `/v1/status` shows. Counters add all of them up.
- There is no pod or namespace label; Prometheus adds them. `_created` series are off.
"""


def page() -> str:
    """The reference page as Markdown."""
    families = "\n".join(_section(family) for family in FAMILIES)
    labels = "\n".join(f"| `{label}` | {meaning} |" for label, meaning in sorted(LABELS.items()))
    return f"{_HEAD}\n## Families\n\n{families}\n## Labels\n\n| label | value |\n|---|---|\n{labels}\n"


def _section(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "no labels"
    lines = [f"### `{family.name}`", "", f"{family.kind} · {labels}", "", family.help]
    if family.buckets:
        lines += ["", "Buckets: " + ", ".join(f"{bound:g}" for bound in family.buckets) + "."]
    if family.note:
        lines += ["", family.note]
    if text := _in_standard(family):
        lines += ["", text]
    return "\n".join([*lines, ""])


def _in_standard(family: Family) -> str:
    """What of it is not in the standard detail."""
    if family in LEFT_OUT:
        return "Only with `metrics.detail: full`."
    stated = []
    if family is TRACES:
        kept = ", ".join(f"`{reason}`" for reason in LOST)
        stated.append(f"By service for {kept}; for other reasons `service` is `{ALL}`")
    if family in ADDED_UP:
        stated.append(f"`service` is `{ALL}`")
    if family in COARSE:
        stated.append(f"Buckets are {', '.join(f'{bound:g}' for bound in COARSE[family])}")
    if family in ONLY:
        stated.append(f"Only {ONLY[family]}")
    return " ".join(f"{each} unless `metrics.detail` is `full`." for each in stated)
