"""One client for each project of a Langfuse, so that everything that asks a project shares one budget of requests."""

from __future__ import annotations

from collections.abc import Iterable

from .budget import RequestBudget
from .client import Access, Langfuse


class Connections:
    """Clients by address and key: Langfuse limits requests by project, so all who ask one project share a budget."""

    def __init__(self, projects: Iterable[Access]) -> None:
        self._projects = list(projects)
        self._clients: dict[tuple[str, str], Langfuse] = {}

    def to(self, access: Access) -> Langfuse:
        """The client of a project, with the smallest of the budgets that are configured for it."""
        key = _key(access)
        if key not in self._clients:
            budgets = [each.requests_per_minute for each in self._projects if _key(each) == key]
            least = min((access.requests_per_minute, *budgets))
            self._clients[key] = Langfuse(access, budget=RequestBudget(least))
        return self._clients[key]

    async def close(self) -> None:
        """Close every connection."""
        for langfuse in self._clients.values():
            await langfuse.close()


def _key(access: Access) -> tuple[str, str]:
    return access.base_url, access.public_key
