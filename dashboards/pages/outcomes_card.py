"""Ledger card: every trace once, by how it ended."""

from __future__ import annotations

from collections.abc import Mapping

from .card import card, facts


def ledger_card(seen: int, still_open: int, ended: Mapping[str, int]) -> str:
    """The section as HTML; reasons that no trace ended with are told together, below."""
    counts = [("open", still_open), *sorted(ended.items(), key=lambda item: -item[1])]
    some = [(reason.replace("_", " "), f"{count:,}") for reason, count in counts if count or reason == "open"]
    none = ", ".join(reason.replace("_", " ") for reason, count in counts if not count and reason != "open")
    rest = f'<p class="rest">none: {none}</p>' if none else ""
    return card("ledger", "Ledger", facts(some) + rest, note=f"{seen:,} traces seen since the start, each counted once")
