"""The fake's datasets and their items, as recorded."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from tests.fakes.langfuse.server import FakeLangfuse, Request, Route, answer, invalid
from tests.fakes.openai import Act

_HELD: WeakKeyDictionary[FakeLangfuse, dict[str, list[dict[str, Any]]]] = WeakKeyDictionary()
_AT = "2026-11-21T01:04:17.900Z"


def datasets_of(fake: FakeLangfuse) -> dict[str, list[dict[str, Any]]]:
    """Items by the name of their dataset, oldest first."""
    return _HELD[fake]


def item(expected: Any, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "datasetId": "ds", "sourceTraceId": None, "sourceObservationId": None, "status": "ACTIVE",
        "createdAt": _AT, "updatedAt": _AT, "input": None,
        "expectedOutput": expected, "metadata": None, "mediaReferences": [],
    }  # fmt: skip
    return {**made, **more}


class _Datasets:
    def __init__(self, fake: FakeLangfuse) -> None:
        self.fake = fake
        self.held: dict[str, list[dict[str, Any]]] = {}

    def items(self, request: Request) -> Act:
        params: Mapping[str, str] = request.params
        name = params.get("datasetName")
        if name is not None and name not in self.held:
            return answer({"message": "Dataset not found", "error": "LangfuseNotFoundError"}, 404)
        found = [
            {"id": f"{dataset}-{number}", **each, "datasetName": dataset}
            for dataset, all_of_it in self.held.items()
            for number, each in reversed(list(enumerate(all_of_it)))
            if name in (None, dataset)
            and ("sourceTraceId" not in params or each["sourceTraceId"] == params["sourceTraceId"])
        ]
        page, limit = int(params.get("page", "1")), int(params.get("limit", "50"))
        meta = {"page": page, "limit": limit, "totalItems": len(found), "totalPages": -(-len(found) // limit)}
        return answer({"data": found[(page - 1) * limit : page * limit], "meta": meta})

    def put(self, request: Request) -> Act:
        body = request.body
        name = body.get("datasetName")
        if not isinstance(name, str):
            return invalid(_no_text("datasetName"))
        if name not in self.held:
            stated = f"Dataset {name} not found for project {self.fake.project['id']}"
            return answer({"message": stated, "error": "LangfuseNotFoundError"}, 404)
        key = body.get("id") or str(uuid.uuid4())
        if any(each.get("id") == key for other, rows in self.held.items() if other != name for each in rows):
            stated = (
                f"Dataset item id {key} already exists in another dataset (id ds) in this project; item ids are unique "
                "per project across datasets. Use a different id or target dataset ds."
            )
            return answer({"message": stated, "error": "LangfuseConflictError"}, 409)
        fields = ("input", "expectedOutput", "metadata", "sourceTraceId", "sourceObservationId", "status")
        given = {k: body[k] for k in fields if body.get(k) is not None}
        known = next((each for each in self.held[name] if each.get("id") == key), None)
        if known is None:
            self.held[name].append(known := item(None, id=key))
        known.update(given)
        return answer({**known, "datasetName": name})

    def delete(self, request: Request) -> Act:
        key = request.args[0]
        for rows in self.held.values():
            for each in rows:
                if each.get("id") == key:
                    rows.remove(each)
                    return answer({"message": "Dataset item successfully deleted"})
        stated = f"Dataset item with id {key} not found for project {self.fake.project['id']}"
        return answer({"message": stated, "error": "LangfuseNotFoundError"}, 404)

    def dataset(self, request: Request) -> Act:
        name = request.args[0]
        if name not in self.held:
            return answer({"message": "Dataset not found", "error": "LangfuseNotFoundError"}, 404)
        return answer(_dataset(self.fake, name))

    def make(self, request: Request) -> Act:
        name = request.body.get("name")
        if not isinstance(name, str):
            return invalid(_no_text("name"))
        self.held.setdefault(name, [])
        return answer(_dataset(self.fake, name))


def part(fake: FakeLangfuse) -> list[Route]:
    made = _Datasets(fake)
    _HELD[fake] = made.held
    return [
        ("GET", "/dataset-items", made.items), ("POST", "/dataset-items", made.put),
        ("DELETE", "/dataset-items/([^/]+)", made.delete),
        ("GET", "/v2/datasets/([^/]+)", made.dataset), ("POST", "/v2/datasets", made.make),
    ]  # fmt: skip


def _dataset(fake: FakeLangfuse, name: str) -> dict[str, Any]:
    return {
        "id": f"ds-{name}", "projectId": fake.project["id"], "name": name, "description": None, "metadata": None,
        "inputSchema": None, "expectedOutputSchema": None, "createdAt": _AT, "updatedAt": _AT,
    }  # fmt: skip


def _no_text(name: str) -> dict[str, Any]:
    stated = "Invalid input: expected string, received undefined"
    return {"expected": "string", "code": "invalid_type", "path": [name], "message": stated}
