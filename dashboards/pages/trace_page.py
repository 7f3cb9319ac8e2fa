"""Story page: what happened to one trace and why: its end, its verdicts, and what was said while that is held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from scoring.case.case import Case
from scoring.trace.trace import Trace

from .card import card
from .evidence import Evidence, Marker, evidence_of
from .html import escape, frame, prose
from .pills import pill, verdict_pill
from .span_tree import span_tree
from .transcript import transcript
from .verdict_card import verdict_card
from .verdict_rows import elsewhere

Absence: TypeAlias = Literal["withheld", "gone", "never", "session", "unreadable"]
"""Why there are no spans: not for this caller; let go of since; never kept; those of its turns; damaged."""
_ABSENT = {
    "withheld": "What was said is not shown to callers from elsewhere: it is shown on the monitor's own machine, for "
    "instance through kubectl port-forward, or with api.contents: always.",
    "gone": "The spans are let go of: they are held only until late spans can no longer come (assembly.late). "
    "This is no trace store; what was said stands where the traces are kept.",
    "never": "Its spans were never kept.",
    "unreadable": "What is held of its spans cannot be read.",
    "session": "What was said stands with the traces that are its turns, while their spans are held.",
}
_OPEN_REFRESH_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePage:
    """``story`` is what the store tells, ``happened`` the same in sentences.

    ``trace`` and ``case`` are what was read of the spans, None where they are absent; ``absent`` then says why.
    """

    story: Mapping[str, object]
    happened: Sequence[str]
    trace: Trace | None = None
    case: Case | None = None
    absent: Absence | None = None
    now_ns: int


def story_page(page: TracePage) -> str:
    """The page as HTML. Everything that comes from the trace is escaped."""
    story = page.story
    verdicts = [each for each in _listed(story.get("verdicts")) if isinstance(each, Mapping)]
    evidence = evidence_of(verdicts, page.case.output_content if page.case is not None else None)
    marker = Marker(evidence)
    said = _said(page, evidence, marker)  # first: verdicts link to what was found in it
    named = {each.number for each in evidence if each.turn is not None} if page.case is not None else set()
    sections = [
        _head(story, verdicts), _happened(page.happened), _turns(story),
        *(verdict_card(each, evidence, marker.found | named) for each in verdicts), said, _spans(page), _foot(story),
    ]  # fmt: skip
    title = f"{_title(story)} · sidejudge"
    refresh_s = _OPEN_REFRESH_S if story.get("reason") is None else None
    return frame(title, "\n".join(filter(None, sections)), refresh_s=refresh_s)


def _head(story: Mapping[str, object], verdicts: Sequence[Mapping[str, object]]) -> str:
    kind = "Session" if story.get("kind") == "session" else "Trace"
    pills = " ".join(
        f'<span class="soft">{escape(each.get("rubric") or "", limit=40)}</span> {verdict_pill(each)}'
        for each in verdicts
    )
    state = "" if verdicts else pill("insufficient_data", escape(str(story.get("reason") or "open").replace("_", " ")))
    return (
        f'<header id="head"><h1><span class="soft">{kind}</span> {escape(_title(story), limit=120)}</h1>{pills}{state}'
        f"{elsewhere(story.get('trace_url'), 'Open in Langfuse')}"
        f'<p class="id whole">{escape(story.get("trace_id") or "")}</p></header>'
    )


def _title(story: Mapping[str, object]) -> str:
    return str(story.get("name") or story.get("trace_id") or "")


def _happened(sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{prose(each.strip(), 600)}</li>" for each in sentences)
    return card("ledger", "What happened", f'<ol class="happened">{items}</ol>')


def _turns(story: Mapping[str, object]) -> str:
    """The traces of a session, or the session of a trace."""
    traces = [str(each) for each in _listed(story.get("traces"))]
    if traces:
        items = "".join(
            f'<li><a class="id" href="/traces/{escape(each)}">{escape(each)}</a></li>' for each in traces[:200]
        )
        return card("turns", "Turns", f'<ol class="happened">{items}</ol>', note=f"{len(traces):,} traces")
    session = str(story.get("session") or "")
    if not session:
        return ""
    shown = f'<p class="rest">This trace is a turn of <a class="id" href="/traces/{escape(session)}">a session</a>.</p>'
    return card("turns", "Session", shown)


def _said(page: TracePage, evidence: Sequence[Evidence], marker: Marker) -> str:
    if page.case is None:
        told = _ABSENT[page.absent] if page.absent else ""
        return card("said", "What was said", f'<div class="empty">{escape(told, limit=500)}</div>') if told else ""
    shown = transcript(page.case, evidence, marker)
    quoted = [each for each in evidence if each.quote]
    missed = [each for each in quoted if each.number not in marker.found]
    note = ""
    if quoted:
        note = f"{len(quoted) - len(missed)} of {len(quoted)} quotations in verdicts and reasons are marked"
        note += "; the others do not stand here word for word" if missed else ""
    return card("said", "What was said", shown, note=note)


def _spans(page: TracePage) -> str:
    if page.trace is None or not page.trace.spans:
        return ""
    count = len(page.trace.spans)
    return card("spans", "Spans", span_tree(page.trace), note=f"{count:,} span{'s' if count != 1 else ''}")


def _foot(story: Mapping[str, object]) -> str:
    address = escape(f"/v1/traces/{story.get('trace_id')}")
    return f'<nav aria-label="For programs" id="foot"><a href="{address}">this story as JSON</a></nav>'


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()
