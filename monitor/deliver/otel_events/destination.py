"""One signal's endpoint: what waits goes out in batches. Nothing ever waits for it.

Telemetry lives in memory alone: what cannot be delivered for long is dropped, and counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from sidejudge.integrations.delivery_errors import DestinationUnreachableError, RefusedError
from sidejudge.integrations.memory_queue import MemoryItem
from sidejudge.integrations.post import Poster
from sidejudge.monitor.deliver.dispatcher import DeliveryTerms

if TYPE_CHECKING:
    from sidejudge.integrations.otel_events.request import Signal
from sidejudge.monitor.config.otel_events import OtelEventsSink

OTEL_EVENTS: Final = "otel_events"
NO_ROOM: Final = "no_room"
"""Too many waited."""
REFUSED: Final = "refused"
"""The endpoint will never take them, or they cannot be written."""
NOT_DELIVERED: Final = "not_delivered"
"""The endpoint could not take them for too long, or until the process ended."""
REASONS: Final = (NO_ROOM, REFUSED, NOT_DELIVERED)
BATCH: Final = 512
GATHER_S: Final = 1.0
"""How long a batch waits for what comes after its first item."""
EXPIRES_NS: Final = 300 * 10**9
"""How old what waits grows while the endpoint cannot be reached."""
TERMS: Final = DeliveryTerms(
    expires_ns=EXPIRES_NS, longest_pause_s=60.0, refused=REFUSED, expired=NOT_DELIVERED
)  # fmt: skip


class SignalDestination:
    """Traces or events, posted to one endpoint."""

    name = OTEL_EVENTS
    batch = BATCH

    def __init__(
        self, signal: Signal, poster: Poster, headers: Mapping[str, str], *, gather_s: float = GATHER_S
    ) -> None:
        self._signal, self._poster = signal, poster
        from sidejudge.integrations.otel_events.request import HEADERS  # noqa: PLC0415  # the sink's name is needed without the SDK

        self._headers = {**HEADERS, **headers}
        self.gather_s = gather_s

    def together(self, entries: Sequence[MemoryItem[object]]) -> Sequence[MemoryItem[object]]:
        """All of them."""
        return entries

    async def deliver(self, entries: Sequence[MemoryItem[object]]) -> Mapping[int, str]:
        """Post the entries as one request; see ``Destination``."""
        path = self._signal.path
        try:
            body = await asyncio.to_thread(self._signal.body, [entry.body for entry in entries])
            answer = await self._poster.post(body, self._headers)
        except DestinationUnreachableError as error:
            raise DestinationUnreachableError(f"{path}: {error.reason}", error.retry_after_s) from None
        except RefusedError as error:
            raise RefusedError(
                f"{path}: {error.reason}; check sinks.otel_events (Langfuse takes traces only)"
            ) from None
        except Exception as error:  # noqa: BLE001  # it costs a batch, not the task; its text may quote a trace
            raise RefusedError(f"{path}: it could not be written or sent: {type(error).__name__}") from None
        rejected, why = self._signal.rejected(answer)
        # A partial success states how many were rejected, not which.
        return {entry.seq: f"{path}: it refuses what it is sent: {why}" for entry in entries[:rejected]}


_PATHS = {"traces": "/v1/traces", "logs": "/v1/logs"}


def try_endpoint(section: OtelEventsSink) -> tuple[str, str]:
    """The finding, and the remedy, empty when all is well."""
    return asyncio.run(_try(section))


async def _try(section: OtelEventsSink) -> tuple[str, str]:
    headers = {"content-type": "application/x-protobuf", **section.sent_headers}
    for signal in section.signals:
        path = _PATHS[signal]
        try:
            await Poster(section.endpoint + path, section.timeout.seconds).post(b"", headers)
        except DestinationUnreachableError as error:
            return f"{path}: {error.reason}", "check sinks.otel_events.endpoint and that it runs"
        except RefusedError as error:
            remedy = "check endpoint, authorization and headers of sinks.otel_events; Langfuse: signals: [traces]"
            return f"{path}: {error.reason}", remedy
    return f"{section.endpoint} takes {' and '.join(section.signals)}", ""
