"""Workflow diff: what a scenario expected of agents and tools beside what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .html import escape

_MOST = 30
_SIDES = ("agents", "tools")
_KINDS = (("included", "had", "✓", "as expected"), ("missing", "missing", "−", "expected, not called"),
          ("unexpected", "extra", "+", "called, not expected"))  # fmt: skip


def workflow_diff(scores: Iterable[Mapping[str, object]]) -> str:
    """The agents and tools of a ``workflow`` verdict's scores, those that went well included; empty without any.

    What each sign means stands beside it in words. Where an order was expected and broken, both orders are shown.
    """
    shown = ""
    for score in scores:
        details = score.get("details")
        if not isinstance(details, Mapping):
            continue
        if score.get("metric") in _SIDES:
            shown += _side(str(score["metric"]), details)
        elif score.get("metric") == "order" and score.get("value") == 0:
            shown += _order(details)
    return f'<div class="diff">{shown}</div>' if shown else ""


def _side(name: str, details: Mapping[str, object]) -> str:
    items = "".join(
        f'<li class="{style}"><span class="sign" aria-hidden="true">{sign}</span> {escape(each, limit=60)} '
        f'<span class="{"unseen" if style == "had" else "said"}">{said}</span></li>'
        for kind, style, sign, said in _KINDS
        for each in _names(details.get(kind))
    )
    return f'<div><span class="side">{name}</span><ul>{items}</ul></div>' if items else ""


def _order(details: Mapping[str, object]) -> str:
    def row(title: str, names: Sequence[object]) -> str:
        steps = " → ".join(escape(each, limit=60) for each in names) or "nothing"
        return f'<div><span class="side">{title}</span><span class="steps">{steps}</span></div>'

    return row("expected order", _names(details.get("expected"))) + row("called in", _names(details.get("called")))


def _names(said: object) -> Sequence[object]:
    return said[:_MOST] if isinstance(said, list | tuple) else ()
