"""The fake's annotation queues: their names are not unique, and one takes the same object twice."""

from __future__ import annotations

import math
import uuid
from typing import TYPE_CHECKING, Any

from tests.fakes.langfuse.server import Request, Route, answer, invalid
from tests.fakes.openai import Act

if TYPE_CHECKING:
    from tests.fakes.langfuse.server import FakeLangfuse


class Queues:
    """A part of a `FakeLangfuse`: `parts=[queues]`, after which `fake.queues` is this."""

    def __init__(self, fake: FakeLangfuse) -> None:
        self._fake = fake
        self.all: list[dict[str, Any]] = []
        self.items: list[dict[str, Any]] = []

    def routes(self) -> list[Route]:
        return [
            ("GET", "/annotation-queues", self._list),
            ("POST", "/annotation-queues", self._create),
            ("GET", "/annotation-queues/([^/]+)/items", self._items),
            ("POST", "/annotation-queues/([^/]+)/items", self._add),
        ]

    def add(self, name: str) -> str:
        """A queue that somebody made; its id."""
        queue = {
            "id": uuid.uuid4().hex, "name": name, "description": None, "scoreConfigIds": [],
            "createdAt": self._fake.now, "updatedAt": self._fake.now,
        }  # fmt: skip
        self.all.append(queue)
        return str(queue["id"])

    def objects(self) -> list[tuple[str, str]]:
        """What is in any queue, in the order in which it came."""
        with self._fake.guard:
            return [(item["objectType"], item["objectId"]) for item in self.items]

    def _list(self, request: Request) -> Act:
        return _page(request, self.all[::-1])

    def _create(self, request: Request) -> Act:
        self.add(request.body["name"])
        self.all[-1]["scoreConfigIds"] = request.body["scoreConfigIds"]
        return answer(self.all[-1])

    def _items(self, request: Request) -> Act:
        if not self._known(request):
            return _unknown()
        return _page(request, [item for item in self.items if item["queueId"] == request.args[0]][::-1])

    def _add(self, request: Request) -> Act:
        if not self._known(request):
            return _unknown()
        body = request.body
        if body.get("objectType") not in ("TRACE", "OBSERVATION", "SESSION"):
            return invalid({"code": "invalid_value", "path": ["objectType"], "message": "Invalid option"})
        item = {
            "id": uuid.uuid4().hex, "queueId": request.args[0], "objectId": body["objectId"],
            "objectType": body["objectType"], "status": "PENDING", "completedAt": None,
            "createdAt": self._fake.now, "updatedAt": self._fake.now,
        }  # fmt: skip
        self.items.append(item)
        return answer(item)

    def _known(self, request: Request) -> bool:
        return any(queue["id"] == request.args[0] for queue in self.all)


def queues(fake: FakeLangfuse) -> list[Route]:
    fake.queues = Queues(fake)
    return fake.queues.routes()


def _page(request: Request, rows: list[dict[str, Any]]) -> Act:
    page, limit = int(request.params.get("page", "1")), int(request.params.get("limit", "50"))
    meta = {"page": page, "limit": limit, "totalItems": len(rows), "totalPages": math.ceil(len(rows) / limit)}
    return answer({"data": rows[(page - 1) * limit : page * limit], "meta": meta})


def _unknown() -> Act:
    return answer({"message": "Annotation queue not found", "error": "LangfuseNotFoundError"}, 404)
