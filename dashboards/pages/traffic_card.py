"""Traffic card: what has come in and what has gone on; a section of the status page."""

from __future__ import annotations

from collections.abc import Mapping

from integrations.otlp.server.traffic import Forwarding, Receiving

from .card import card, facts
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
    told = [
        ("requests", f"{receiving.requests:,}"),
        ("spans", f"{receiving.spans:,}"),
        ("log records", f"{receiving.log_records:,}"),
        *((f"refused, {code}", f"{count:,}") for code, count in sorted(receiving.refused.items())),
    ]
    note = escape(", ".join((f"over {ways}", *kept)))
    return card("traffic", "Traffic", facts(told) + _forwarding(forwarding), note=note)


def _forwarding(told: Forwarding | None) -> str:
    if told is None:
        return ""
    counts = [
        *_counted("", told.requests),
        *_counted("answered ", told.answers),
        *_counted("no answer, ", told.failed),
        *_counted("not judged, ", told.unjudged),
    ]
    last = f" · last failure: {told.last_failure}" if told.last_failure else ""
    note = f'<span class="soft">{escape(told.upstream + last)}</span>'
    return f'<div class="head"><h3>Forwarding</h3>{note}</div>{facts(counts)}'


def _counted(what: str, counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(f"{what}{name.replace('_', ' ')}", f"{count:,}") for name, count in sorted(counts.items())]
