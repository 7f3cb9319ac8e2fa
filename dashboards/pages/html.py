"""HTML: the frame that all pages share, and escaping. Nothing is loaded from anywhere else.

Names and reasons on these pages come from traces. ``escape`` and ``prose`` are the only ways by which they enter, and
the content security policy lets nothing run or load but the one style sheet and the one script, named by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from pathlib import Path

_CLIP = 300
"""Characters of a text from a trace that a page shows."""
_PAGES = (("/", "Status"), ("/verdicts", "Verdicts"), ("/configuration", "Configuration"), ("/docs", "API"))


@cache
def stylesheet() -> str:
    """The style sheet of all pages."""
    return Path(__file__).with_name("page.css").read_text(encoding="utf-8")


@cache
def script() -> str:
    """The script of the pages that keep themselves up to date; they are whole without it."""
    return Path(__file__).with_name("live.js").read_text(encoding="utf-8")


@cache
def security_policy() -> str:
    """The content security policy of all pages that the monitor serves."""
    style, code = _digest(stylesheet()), _digest(script())
    return (
        f"default-src 'none'; style-src {style}; script-src {code}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


def escape(value: object, limit: int = _CLIP) -> str:
    """A value as HTML text or attribute: cut to ``limit`` characters, on one line, with nothing that has a meaning."""
    text = str(value)[: limit + 1]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return html.escape(text if len(text) <= limit else text[: limit - 1] + "…", quote=True)


def prose(value: str, limit: int) -> str:
    """A longer text, whose lines stay lines; otherwise like ``escape``."""
    lines = value[: limit + 1].replace("\r\n", "\n").split("\n")
    shown = "\n".join(escape(line, limit=limit + 1) for line in lines)
    return shown if len(value) <= limit else f"{shown}…"


def frame(title: str, body: str, *, here: str = "", refresh_s: int | None = None, icon: str = "#5d6675") -> str:
    """A whole page around ``body``, which is HTML already. ``here`` is the page's own address among the main ones.

    With ``refresh_s`` it keeps itself up to date: by its script, without scripts by being loaded again.
    """
    refresh = f'<noscript><meta http-equiv="refresh" content="{refresh_s}"></noscript>\n' if refresh_s else ""
    code = f"\n<script>{script()}</script>" if refresh_s else ""
    current = ' aria-current="page"'
    links = "".join(f'<a href="{at}"{current if at == here else ""}>{name}</a>' for at, name in _PAGES)
    bar = (
        '<a class="skip" href="#main">Skip to the content</a>\n<header class="bar"><a class="brand" href="/">sidejudge'
        f'</a><nav aria-label="Pages">{links}</nav></header>\n'
    )
    return _page(title, body, head=refresh, style=stylesheet(), icon=icon, before=bar, after=code)


def standalone(title: str, body: str, *, style: str, layout: str = "") -> str:
    """A whole page that is a file: ``style`` follows the common style sheet, and the policy stands in the page.

    ``layout`` is the class of the page's one column.
    """
    styles = stylesheet() + style
    policy = f"default-src 'none'; style-src {_digest(styles)}; img-src data:; base-uri 'none'; form-action 'none'"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    return _page(title, body, head=head, style=styles, icon="#5d6675", layout=layout)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _page(
    title: str, body: str, *, head: str, style: str, icon: str, layout: str = "", before: str = "", after: str = ""
) -> str:
    dot = f"%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E%3Ccircle cx='4' cy='4' r='4' fill='%23{icon[1:]}'/%3E%3C/svg%3E"  # noqa: E501
    column = f' class="{escape(layout)}"' if layout else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{head}<title>{escape(title)}</title>\n"
        f'<link rel="icon" href="data:image/svg+xml,{dot}">\n'
        f'<style>{style}</style>\n</head>\n<body>\n{before}<main id="main"{column}>\n{body}\n</main>{after}\n'
        "</body>\n</html>\n"
    )


def duration(seconds: float) -> str:
    """``90`` → ``1 min 30 s``: the two largest units that are not zero."""
    left, parts = round(max(0.0, seconds)), []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"
