"""Connections: one client for each project of a Langfuse, and with it one budget for all who ask there."""

from __future__ import annotations

from monitor.config import Config
from monitor.config.langfuse import LangfuseProject
from monitor.deliver.langfuse.sink import connect

from .client import Langfuse


class Connections:
    """Clients by address and key. Limits of requests are Langfuse's by project, so whoever shares it shares them."""

    def __init__(self, config: Config) -> None:
        self._projects = [each for each in (config.sinks.langfuse, config.sources.langfuse) if each is not None]
        self._made: dict[tuple[str, str], Langfuse] = {}

    def to(self, project: LangfuseProject) -> Langfuse:
        """The client of a project, with the smallest of the budgets that are configured for it."""
        key = _key(project)
        if key not in self._made:
            same = [each for each in self._projects if _key(each) == key]
            least = min((project, *same), key=lambda each: each.requests_per_minute)
            self._made[key] = connect(project.model_copy(update={"requests_per_minute": least.requests_per_minute}))
        return self._made[key]

    async def close(self) -> None:
        """Let all of them go."""
        for langfuse in self._made.values():
            await langfuse.close()


def _key(project: LangfuseProject) -> tuple[str, str]:
    return project.base_url, project.public_key.get_secret_value()
