"""The fake's dataset items, as recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from tests.fakes.langfuse.server import FakeLangfuse, Request, Route, answer
from tests.fakes.openai import Act

_HELD: WeakKeyDictionary[FakeLangfuse, dict[str, list[dict[str, Any]]]] = WeakKeyDictionary()


def datasets_of(fake: FakeLangfuse) -> dict[str, list[dict[str, Any]]]:
    """Items by the name of their dataset, oldest first."""
    return _HELD[fake]


def item(expected: Any, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "datasetId": "ds", "sourceTraceId": None, "sourceObservationId": None, "status": "ACTIVE",
        "createdAt": "2026-11-21T01:04:17.900Z", "updatedAt": "2026-11-21T01:04:17.900Z", "input": None,
        "expectedOutput": expected, "metadata": None, "mediaReferences": [],
    }  # fmt: skip
    return {**made, **more}


def part(fake: FakeLangfuse) -> list[Route]:
    held = _HELD[fake] = {}

    def items(request: Request) -> Act:
        params: Mapping[str, str] = request.params
        name = params.get("datasetName")
        if name is not None and name not in held:
            return answer({"message": "Dataset not found", "error": "LangfuseNotFoundError"}, 404)
        found = [
            {"id": f"{dataset}-{number}", **each, "datasetName": dataset}
            for dataset, all_of_it in held.items()
            for number, each in reversed(list(enumerate(all_of_it)))
            if name in (None, dataset)
            and ("sourceTraceId" not in params or each["sourceTraceId"] == params["sourceTraceId"])
        ]
        page, limit = int(params.get("page", "1")), int(params.get("limit", "50"))
        meta = {"page": page, "limit": limit, "totalItems": len(found), "totalPages": -(-len(found) // limit)}
        return answer({"data": found[(page - 1) * limit : page * limit], "meta": meta})

    return [("GET", "/dataset-items", items)]
