"""Sinks of installed packages: ``deliver`` of their object is called with verdicts, as ``sinks.jsonl`` writes them.

A package that cannot be loaded, and one that raises or hangs, costs nothing but its own deliveries: they wait in the
outbox, are tried again, and after a day are set aside until the next start.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sidejudge.integrations.delivery_errors import DestinationUnreachableError
from sidejudge.integrations.plugin_calls import PluginObject
from sidejudge.integrations.store.notification_outbox import PendingNotice
from sidejudge.monitor.config.plugins import SINKS, factory
from sidejudge.monitor.config.sinks import PluginSink
from sidejudge.monitor.deliver.dispatcher import DeliveryTerms
from sidejudge.monitor.deliver.sink import SinkParts, VerdictSink
from sidejudge.scoring.lexical.shown_text import label

_LIMIT = 300


def plugin_sinks(parts: SinkParts) -> list[PluginVerdicts]:
    """The configured ones, in order."""
    return [PluginVerdicts(name, section, parts) for name, section in parts.config.sinks.plugins.items()]


class PluginVerdicts(VerdictSink):
    """Hands verdicts to one object of a plugin, at most ``batch`` at a time, in order, each at least once."""

    def __init__(self, name: str, section: PluginSink, parts: SinkParts) -> None:
        super().__init__(name, parts, DeliveryTerms())
        self._object = PluginObject(name, factory(SINKS, section.use or name), section.arguments, "deliver")

    async def deliver(self, entries: Sequence[PendingNotice]) -> Mapping[int, str]:
        """Call the plugin; see ``Destination``. It may return why it refuses a verdict, by its position."""
        returned = await self._object.call([json.loads(entry.body) for entry in entries])
        if returned is None:
            return {}
        if not isinstance(returned, Mapping) or not all(each in range(len(entries)) for each in returned):
            cause = f"deliver returns {label(repr(returned), _LIMIT)}, not None or a map from positions to reasons"
            raise DestinationUnreachableError(f"{self.name}: {cause}")
        return {entries[at].seq: label(str(why), _LIMIT) for at, why in returned.items()}
