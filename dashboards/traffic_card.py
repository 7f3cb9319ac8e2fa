"""Traffic card: what has come in and what has gone on; a section of the status page."""

from __future__ import annotations

from collections.abc import Mapping

from integrations.otlp.traffic import Forwarding, Receiving

from .html import escape


def traffic_card(receiving: Receiving | None, forwarding: Forwarding | None) -> str:
    """The section as HTML, empty where nothing is received. Causes come from other servers: all is escaped."""
    if receiving is None:
        return ""
    ways = " and ".join(protocol.replace("grpc", "gRPC").replace("http", "HTTP") for protocol in receiving.protocols)
    kept = [
        name
        for name, is_so in (("encrypted", receiving.encrypted), ("by credential", receiving.authenticated))
        if is_so
    ]
    facts = [
        ("requests", f"{receiving.requests:,}"),
        ("spans", f"{receiving.spans:,}"),
        ("log records", f"{receiving.log_records:,}"),
        *((f"refused, {code}", f"{count:,}") for code, count in sorted(receiving.refused.items())),
    ]
    note = f'<span class="soft">{escape(", ".join((f"over {ways}", *kept)))}</span>'
    shown = f'<div class="head"><h2>Traffic</h2>{note}</div><dl>{_facts(facts)}</dl>'
    return f'<section class="card">{shown}{_forwarding(forwarding)}</section>'


def _forwarding(told: Forwarding | None) -> str:
    if told is None:
        return ""
    facts = [
        *_counted("", told.requests),
        *_counted("answered ", told.answers),
        *_counted("no answer, ", told.failed),
        *_counted("not judged, ", told.unjudged),
    ]
    last = f" · last failure: {told.last_failure}" if told.last_failure else ""
    note = f'<span class="soft">{escape(told.upstream + last)}</span>'
    return f'<div class="head"><h2>Forwarding</h2>{note}</div><dl>{_facts(facts)}</dl>'


def _counted(what: str, counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(f"{what}{name.replace('_', ' ')}", f"{count:,}") for name, count in sorted(counts.items())]


def _facts(facts: list[tuple[str, str]]) -> str:
    return "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
