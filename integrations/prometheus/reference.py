"""Reference: what the page of metric families is made of, written from the declarations."""

from __future__ import annotations

from .exposition import ADDED_UP, ALL, COARSE, LEFT_OUT, LOST, ONLY
from .families import FAMILIES, LABELS, TRACES, Family


def families() -> str:
    """All families as Markdown, in their order."""
    return "\n".join(map(_section, FAMILIES))


def labels() -> str:
    """The rows of a table of all labels."""
    return "\n".join(f"| `{label}` | {meaning} |" for label, meaning in sorted(LABELS.items()))


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
