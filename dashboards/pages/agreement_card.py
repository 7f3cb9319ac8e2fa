"""Agreement card: how far verdicts agree with people's; a section of the status page."""

from __future__ import annotations

from collections.abc import Mapping

from scoring.result.result import Unavailable
from scoring.runs.calibrated import Calibrated, ErrorRate, Figure
from scoring.statistics.agreement import Kappa
from scoring.status.agreement_snapshot import AgreementSnapshot, AnnotationQueueSnapshot

from .card import card, facts, name_cell, table
from .html import escape
from .instants import age
from .pills import pill

MOST = 50
"""Rubrics and metrics on the page."""
_COLUMNS = ("Rubric", "Metric", "Labels#", "Agree#", "Kappa#", "AC1#", "We pass what people pass#",
            "We fail what people fail#")  # fmt: skip


def agreement_card(agreement: AgreementSnapshot | None, now_ns: int) -> str:
    """The section as HTML, empty where no labels are read. Names and reasons come from people and servers: escaped."""
    if agreement is None:
        return ""
    # The verdict itself first, then the metrics that have most labels.
    ordered = sorted(agreement.measured, key=lambda each: (each.metric != "pass", -each.n))
    shown = (
        table("Agreement of verdicts with people's labels", _COLUMNS, map(_row, ordered[:MOST]), stacked=True)
        if ordered
        else '<div class="empty">No label that tells anything yet.</div>'
    )
    more = f'<p class="rest">and {len(ordered) - MOST} more in the status as JSON</p>' if len(ordered) > MOST else ""
    trouble = (
        f'<p class="reason">{pill("warning", "not read")} {escape(agreement.reason)}</p>' if agreement.reason else ""
    )
    body = f"{trouble}{shown}{more}{facts(_told(agreement))}{_queue(agreement.queue)}"
    return card("agreement", "Agreement with people", body, note=_note(agreement, now_ns))


def _note(agreement: AgreementSnapshot, now_ns: int) -> str:
    read = f"read {age(int(agreement.read_s * 1e9), now_ns)}" if agreement.read_s is not None else "not read yet"
    return f"{escape(agreement.source)} · {read}"


def _row(measured: Calibrated) -> str:
    figures = measured.figures
    return (
        f'<tr><th scope="row" class="name">{name_cell(measured.rubric)}</th>'
        f'<td class="name" data-name="metric">{name_cell("verdict" if measured.metric == "pass" else measured.metric)}'
        f'<td class="number" data-name="labels">{measured.n:,}'
        f"{_figure('agree', figures.get('raw_agreement'))}{_figure('kappa', figures.get('kappa'))}"
        f"{_figure('AC1', figures.get('ac1'))}{_figure('passes kept', figures.get('true_positive_rate'))}"
        f"{_figure('failures found', figures.get('true_negative_rate'))}</tr>"
    )


def _figure(name: str, figure: Figure | None) -> str:
    why = f' title="{escape(figure.reason)}"' if isinstance(figure, Unavailable) else ""
    return f'<td class="number" data-name="{name}"{why}>{_said(figure)}'


def _said(figure: Figure | None) -> str:
    """A figure with its interval; a dash where it is not known."""
    if isinstance(figure, ErrorRate):
        return f'{figure.value:.1%}<br><span class="bounds">{figure.lower:.1%} – {figure.upper:.1%}</span>'
    if isinstance(figure, Kappa):
        return f'{figure.value:.2f}<br><span class="bounds">{figure.lower:.2f} – {figure.upper:.2f}</span>'
    return f"{figure:.2f}" if isinstance(figure, int | float) else "–"


def _told(agreement: AgreementSnapshot) -> list[tuple[str, object]]:
    corrections = sum(agreement.corrections.values())
    passed = sum(agreement.corrected_passes.values())
    told: list[tuple[str, object]] = []
    if corrections:
        told.append(("corrected answers", f"{corrections:,}, {passed:,} of which had passed"))
    return told + [(f"passed over, {name.replace('_', ' ')}", f"{n:,}") for name, n in _some(agreement.passed_over)]


def _queue(queue: AnnotationQueueSnapshot | None) -> str:
    if queue is None:
        return ""
    told = [(name.replace("_", " "), f"{n:,}") for name, n in _some(queue.put)]
    if queue.left_out:
        told.append(("left out, the hour is full", f"{queue.left_out:,}"))
    why = f' <span class="soft">{escape(queue.reason)}</span>' if queue.reason else ""
    head = f'<div class="head"><h3>Put before people: {escape(queue.name, limit=80)}</h3>{why}</div>'
    return head + (facts(told) if told else '<p class="rest">nothing yet</p>')


def _some(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(name, count) for name, count in sorted(counts.items()) if count]
