"""HTML: the frame that all pages share, and escaping. Nothing is loaded from anywhere; there is no script.

Names and reasons on these pages come from traces. ``escape`` is the only way by which they enter, and the content
security policy lets nothing run or load but the one style sheet, which it names by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from pathlib import Path

_CLIP = 300
"""Characters of a text from a trace that a page shows."""


@cache
def stylesheet() -> str:
    """The style sheet of all pages."""
    return Path(__file__).with_name("page.css").read_text(encoding="utf-8")


@cache
def security_policy() -> str:
    """The content security policy of all pages."""
    return f"{_only_style(stylesheet())}; frame-ancestors 'none'"


def escape(value: object, limit: int = _CLIP) -> str:
    """A value as HTML text or attribute: cut to ``limit`` characters, on one line, with nothing that has a meaning."""
    text = str(value)[: limit + 1]
    text = "".join(c if c.isprintable() else " " for c in text)
    return html.escape(text if len(text) <= limit else text[: limit - 1] + "…", quote=True)


def frame(title: str, body: str, *, refresh_s: int | None = None, icon: str = "#5d6675") -> str:
    """A whole page around ``body``, which is HTML already."""
    refresh = f'<meta http-equiv="refresh" content="{refresh_s}">\n' if refresh_s else ""
    return _page(title, body, head=refresh, style=stylesheet(), icon=icon)


def standalone(title: str, body: str, *, style: str, layout: str = "") -> str:
    """A whole page that is a file: ``style`` follows the common style sheet, and the policy stands in the page.

    ``layout`` is the class of the page's one column.
    """
    styles = stylesheet() + style
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_only_style(styles)}">\n'
    return _page(title, body, head=policy, style=styles, icon="#5d6675", layout=layout)


def _only_style(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def _page(title: str, body: str, *, head: str, style: str, icon: str, layout: str = "") -> str:
    dot = f"%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E%3Ccircle cx='4' cy='4' r='4' fill='%23{icon[1:]}'/%3E%3C/svg%3E"  # noqa: E501
    column = f' class="{escape(layout)}"' if layout else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{head}<title>{escape(title)}</title>\n"
        f'<link rel="icon" href="data:image/svg+xml,{dot}">\n'
        f"<style>{style}</style>\n</head>\n<body>\n<main{column}>\n{body}\n</main>\n</body>\n</html>\n"
    )


def duration(seconds: float) -> str:
    """``90`` → ``1 min 30 s``: the two largest units that are not zero."""
    left, parts = round(max(0.0, seconds)), []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"
