"""Notifiers of installed packages: ``send`` of their object is called with each notice, as the webhook posts it."""

from __future__ import annotations

from sidejudge.integrations.notify.webhook import notice_record
from sidejudge.integrations.plugin_calls import PluginObject
from sidejudge.monitor.config.notify import PluginReceiver
from sidejudge.monitor.config.plugins import NOTIFIERS, factory
from sidejudge.scoring.notices.notice import Notice
from sidejudge.scoring.notices.text import Wording


class PluginNotifier:
    """Sends notices through one object of a plugin. One that cannot be loaded, raises or hangs has its notices wait."""

    def __init__(self, name: str, section: PluginReceiver, wording: Wording) -> None:
        self._wording = wording
        self._object = PluginObject(name, factory(NOTIFIERS, section.use), section.arguments, "send")

    async def send(self, notice: Notice) -> None:
        """Return once the plugin has returned; see ``Sender``."""
        await self._object.call(notice_record(notice, self._wording))
