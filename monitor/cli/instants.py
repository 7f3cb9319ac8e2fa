"""Options that are times, as people write them."""

from __future__ import annotations

from .errors import CommandError


def instant_of(option: str, text: str) -> int:
    """The time in ns since the epoch, UTC where it names no zone; ``CommandError`` names the option."""
    from integrations.langfuse.observations import instant_ns

    found = instant_ns(text)
    if found is None:
        raise CommandError(f"{option}: {text!r} is no time", f"for example {option} 2026-11-01T12:00Z")
    return found
