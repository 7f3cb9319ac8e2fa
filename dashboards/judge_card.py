"""Judge card: whether the judge can be asked, what it costs, and what waits for it; a section of the status page."""

from __future__ import annotations

from scoring.judge_standing import JudgeStanding, ModelStanding, Spending

from .html import escape

_STATES = {
    "closed": ("healthy", "answers"),
    "half_open": ("warning", "being tried"),
    "open": ("critical", "out of reach"),
}


def judge_card(judge: JudgeStanding | None) -> str:
    """The section as HTML, empty where no judge is configured. Reasons come from providers: all is escaped."""
    if judge is None:
        return ""
    rows = "".join(_model(model) for model in judge.models)
    facts = [
        ("in flight", f"{judge.under_way:,}"),
        ("waiting", f"{judge.waiting:,}"),
        *((f"this {spending.period}", _spent(spending)) for spending in judge.spending),
        *((f"judged, {priority}", f"{share:.0%}") for priority, share in judge.shares.items() if share < 1.0),
    ]
    shown = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    note = f'<span class="soft">{escape(judge.name, limit=120)}</span>'
    return (
        f'<section class="card"><div class="head"><h2>Judge</h2>{note}</div><div class="scroll"><table><thead><tr>'
        f"<th>State<th>Model<th>Why</tr></thead><tbody>{rows}</tbody></table></div><dl>{shown}</dl></section>"
    )


def _model(model: ModelStanding) -> str:
    style, name = _STATES[model.circuit]
    return (
        f'<tr><td><span class="pill {style}">{name}</span><td class="name">{escape(model.model, limit=120)}'
        f'<td class="why">{escape(model.reason)}</tr>'
    )


def _spent(spending: Spending) -> str:
    limit = "" if spending.limit_usd is None else f" of ${spending.limit_usd:,.2f}"
    return f"${spending.spent_usd:,.2f}{limit}"
