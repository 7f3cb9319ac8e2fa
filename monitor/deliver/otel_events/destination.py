"""Destination: what own traces and events are called where exports are counted, and why they may be given up."""

from __future__ import annotations

from typing import Final

DESTINATION: Final = "otel_events"
NO_ROOM: Final = "no_room"
"""Too many waited."""
REFUSED: Final = "refused"
"""The endpoint would never take them."""
NOT_DELIVERED: Final = "not_delivered"
"""The endpoint could not take them for too long, or until the end."""
REASONS: Final = (NO_ROOM, REFUSED, NOT_DELIVERED)
