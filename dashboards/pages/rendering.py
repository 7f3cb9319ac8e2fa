"""Rendering: templates to HTML pages that load nothing from anywhere else.

Names and reasons on the pages come from traces. Every value that a template prints is cut, put on one line and escaped
(`finalize`, then autoescape), so a template cannot forget to; `clip` and `prose` print more of a value. The content
security policy lets nothing run or load but the one style sheet and the one script, each named by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from sidejudge.scoring.lexical.amount import amount
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.status.failure_groups import COMPOSITE
from sidejudge.scoring.verdict.rubric import all_criteria

from .failing_metrics import failing_metrics, value_of

if TYPE_CHECKING:
    from jinja2 import Environment

_CLIP = 300
"""Most characters of a value on a page, unless its template asks for more."""
_FOLDER = Path(__file__).parent
_TIME = re.compile(r"(<time\b[^>]*>)[^<]*")


@cache
def stylesheet() -> str:
    """The style sheet of all pages."""
    return (_FOLDER / "page.css").read_text(encoding="utf-8")


@cache
def script() -> str:
    """The script of all pages, which are whole without it: it keeps them up to date, sorts tables and copies ids."""
    return "".join((_FOLDER / name).read_text(encoding="utf-8") for name in ("live.js", "tables.js"))


@cache
def security_policy() -> str:
    """The content security policy of all pages that the monitor serves."""
    style, code = digest(stylesheet()), digest(script())
    return (
        f"default-src 'none'; style-src {style}; script-src {code}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


def digest(text: str) -> str:
    """A style sheet or a script as a content security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def render(template: str, /, **values: object) -> str:
    """A template with these values, as HTML.

    Args:
        template: Its path below ``templates``.
        **values: Its values. A missing value that the template uses raises ``UndefinedError``.
    """
    return environment().get_template(template).render(values)


@cache
def environment() -> Environment:
    """The templates' environment: strict about missing values, escaping all foreign values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # 2 MB, at the first page

    def finalize(value: object) -> object:
        return value if isinstance(value, Markup | StrictUndefined) else clip(value)

    made = Environment(
        loader=PackageLoader("sidejudge.dashboards.pages"), autoescape=True, undefined=StrictUndefined,
        finalize=finalize, trim_blocks=True, lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    made.filters.update(
        clip=clip, prose=prose, words=lambda name: name.replace("_", " "), count="{:,}".format,
        percent="{:.1%}".format, duration=duration, iso=_iso, utc=_utc, json=_json, amount=amount,
    )  # fmt: skip
    made.tests["web_address"] = lambda text: text.startswith(("https://", "http://"))
    made.globals.update(
        stylesheet=stylesheet, script=script, digest=digest, failed_verdicts=failed_verdicts, value_of=value_of,
        failed_by=failed_by, failing=failing_metrics, metric_card=metric_card, service_at=service_at,
    )  # fmt: skip
    return made


def undated(page: str) -> str:
    """A page without the texts of its instants: two such pages are equal where nothing but time has passed."""
    return _TIME.sub(r"\1", page)


def clip(value: object, limit: int = _CLIP) -> Markup:
    """A value as HTML text or attribute: cut to ``limit`` characters, on one line, escaped."""
    text = str(value)[: limit + 1]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return escape(text if len(text) <= limit else text[: limit - 1] + "…")


def prose(value: str, limit: int) -> Markup:
    """A longer text, whose lines stay lines; otherwise like ``clip``."""
    lines = value[: limit + 1].replace("\r\n", "\n").split("\n")
    shown = Markup("\n").join(clip(line, limit + 1) for line in lines)
    return shown if len(value) <= limit else shown + "…"


def query_of(parameters: Mapping[str, str]) -> str:
    """The parameters that have a value, as the query of an address."""
    # encoded as bytes: a lone surrogate in a name must not cost the page
    return urlencode({name: value.encode("utf-8", "replace") for name, value in parameters.items() if value})


def service_at(service: str, environment: str, rubric: str) -> str:
    """The address of the page of one service."""
    return f"/services?{query_of({'service': service, 'environment': environment, 'rubric': rubric})}"


def failed_verdicts(service: str, environment: str, rubric: str) -> str:
    """The address of the failed verdicts of one service."""
    wanted = {"service": service, "environment": environment, "rubric": rubric, "passed": "false"}
    return f"/verdicts?{query_of(wanted)}"


def failed_by(rubric: str, metric: str) -> str:
    """The address of the verdicts of the last day that fail by a metric; for the composite, of all that fail."""
    of = {} if metric == COMPOSITE else {"metric": metric}
    return f"/verdicts?{query_of({'rubric': rubric, 'passed': 'false', 'last': '1d', **of})}"


def metric_card(rubric: str, metric: str) -> str:
    """The address of a metric's card: in the documentation, or for a rubric of one's own on its page."""
    if rubric in RUBRICS:
        return f"/help/reference/metrics#{rubric}-{metric}" if metric in _metrics(rubric) else ""
    return f"/rubrics/{quote(rubric)}#{quote(metric)}" if rubric and metric else ""


@cache
def _metrics(rubric: str) -> frozenset[str]:
    """Those of a built-in rubric."""
    return frozenset(each.metric.id for each in all_criteria(RUBRICS[rubric]))


def duration(seconds: float) -> str:
    """``90`` → ``1 min 30 s``: the two largest units that are not zero."""
    left, parts = round(max(0.0, seconds)), []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _iso(ns: int) -> str:
    return _at(ns).isoformat(timespec="seconds").replace("+00:00", "Z")


def _utc(ns: int) -> str:
    return _at(ns).strftime("%Y-%m-%d %H:%M:%S")


def _at(ns: int) -> datetime:
    return datetime.fromtimestamp(ns // 10**9, UTC)
