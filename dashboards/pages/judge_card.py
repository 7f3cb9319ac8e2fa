"""Judge card: whether the judge can be asked, what it costs, and what waits for it; a section of the status page."""

from __future__ import annotations

from scoring.status.judge_snapshot import JudgeModelSnapshot, JudgeSnapshot, Spending

from .card import card, facts, table
from .html import escape
from .pills import pill

_STATES = {
    "closed": ("healthy", "answers"),
    "half_open": ("warning", "being tried"),
    "open": ("critical", "out of reach"),
}


def judge_card(judge: JudgeSnapshot | None) -> str:
    """The section as HTML, empty where no judge is configured. Reasons come from providers: all is escaped."""
    if judge is None:
        return ""
    told = [
        ("in flight", f"{judge.under_way:,}"),
        ("waiting", f"{judge.waiting:,}"),
        *((f"this {spending.period}", _spent(spending)) for spending in judge.spending),
        *((f"judged, {priority}", f"{share:.0%}") for priority, share in judge.shares.items() if share < 1.0),
    ]
    models = table("The models that judge", ("State", "Model", "Why"), map(_model, judge.models), stacked=True)
    return card("judge", "Judge", models + facts(told), note=escape(judge.name, limit=120))


def _model(model: JudgeModelSnapshot) -> str:
    style, name = _STATES[model.circuit]
    return (
        f'<tr><td>{pill(style, name)}<th scope="row" class="name">{escape(model.model, limit=120)}</th>'
        f'<td class="why">{escape(model.reason)}</tr>'
    )


def _spent(spending: Spending) -> str:
    limit = "" if spending.limit_usd is None else f" of ${spending.limit_usd:,.2f}"
    return f"${spending.spent_usd:,.2f}{limit}"
