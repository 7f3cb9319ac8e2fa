"""The fake's score configs, and what a worker does with a score that names one."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.fakes.langfuse.server import Request, Route, answer, invalid
from tests.fakes.openai import Act

if TYPE_CHECKING:
    from tests.fakes.langfuse.server import FakeLangfuse


class Configs:
    def __init__(self, fake: FakeLangfuse) -> None:
        self._fake = fake
        self.all: list[dict[str, Any]] = []
        """Oldest first. Names are not unique."""

    def routes(self) -> list[Route]:
        return [
            ("GET", "/score-configs", self._list),
            ("POST", "/score-configs", self._create),
            ("GET", "/score-configs/([^/]+)", self._get),
            ("PATCH", "/score-configs/([^/]+)", self._change),
        ]

    def fitted(self, score: Mapping[str, Any]) -> dict[str, Any] | None:
        """The score as it is stored; None when it does not fit the config that it names."""
        if not score.get("configId"):
            return dict(score)
        config = next((c for c in self.all if c["id"] == score["configId"]), None)
        if config is None or config["isArchived"]:
            return None
        value, kind = (
            score["value"],
            score.get("dataType") or ("CATEGORICAL" if isinstance(score["value"], str) else "NUMERIC"),
        )
        if kind != config["dataType"]:
            return None
        if kind == "NUMERIC":
            low, high = config["minValue"], config["maxValue"]
            if (low is not None and value < low) or (high is not None and value > high):
                return None
        if kind == "CATEGORICAL" and value not in [each["label"] for each in config["categories"]]:
            return None
        return {**score, "name": config["name"]}

    def _list(self, request: Request) -> Act:
        page, limit = int(request.params.get("page", "1")), int(request.params.get("limit", "50"))
        newest_first = self.all[::-1]
        meta = {
            "page": page,
            "limit": limit,
            "totalItems": len(self.all),
            "totalPages": math.ceil(len(self.all) / limit),
        }
        return answer({"data": newest_first[(page - 1) * limit : page * limit], "meta": meta})

    def _get(self, request: Request) -> Act:
        config = self._find(request.args[0])
        return answer(config) if config else _unknown()

    def _change(self, request: Request) -> Act:
        config = self._find(request.args[0])
        if config is None:
            return _unknown()
        config.update(request.body, updatedAt=self._fake.now)
        return answer(config)

    def _create(self, request: Request) -> Act:
        body = request.body
        kind, categories = body.get("dataType"), body.get("categories")
        if kind not in ("NUMERIC", "BOOLEAN", "CATEGORICAL", "TEXT"):
            return invalid(
                {
                    "code": "invalid_union",
                    "errors": [],
                    "note": "No matching discriminator",
                    "discriminator": "dataType",
                    "path": ["dataType"],
                    "message": "Invalid input",
                }
            )
        if not isinstance(body.get("name"), str) or not 1 <= len(body["name"]) <= 35:
            return invalid(
                {
                    "origin": "string",
                    "code": "too_big",
                    "maximum": 35,
                    "inclusive": True,
                    "path": ["name"],
                    "message": "Too big: expected string to have <=35 characters",
                }
            )
        if kind == "CATEGORICAL":
            if not isinstance(categories, list):
                return invalid(
                    {"code": "invalid_union", "errors": [], "path": ["categories"], "message": "Invalid input"}
                )
            labels = [each["label"] for each in categories]
            for each in labels:
                if labels.count(each) > 1:
                    stated = f"Duplicate category label: {each}, category labels must be unique"
                    return invalid({"code": "custom", "message": stated, "path": ["categories"]})
        low, high = body.get("minValue"), body.get("maxValue")
        if low is not None and high is not None and high <= low:
            return invalid(
                {"code": "custom", "message": "Maximum value must be greater than Minimum value", "path": []}
            )
        if kind == "BOOLEAN":
            categories = [{"label": "True", "value": 1}, {"label": "False", "value": 0}]
        config = {
            "id": str(uuid.uuid4()), "name": body["name"], "isArchived": False, "description": body.get("description"),
            "createdAt": self._fake.now, "updatedAt": self._fake.now, "projectId": self._fake.project["id"],
            "maxValue": high, "minValue": low, "dataType": kind, "categories": categories,
        }  # fmt: skip
        self.all.append(config)
        return answer(config)

    def _find(self, wanted: str) -> dict[str, Any] | None:
        return next((config for config in self.all if config["id"] == wanted), None)


def _unknown() -> Act:
    return answer(
        {"message": "Score config not found within authorized project", "error": "LangfuseNotFoundError"}, 404
    )
