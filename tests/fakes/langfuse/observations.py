"""The fake's traces: observations as version 4 tells them, and the legacy reads; with every trap that they have.

A part: `FakeLangfuse(mode, parts=[Observations.part])`; `observations_of(fake)` is what it holds.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from tests.fakes.langfuse.server import EVENTS_ONLY, FakeLangfuse, Mode, Request, Route, answer, invalid, stamp
from tests.fakes.openai import Act

GROUPS = {
    "core": ("id", "traceId", "startTime", "endTime", "projectId", "parentObservationId", "type"),
    "basic": ("name", "level", "statusMessage", "version", "environment", "userId", "sessionId", "isRootObservation",
              "bookmarked", "public"),
    "time": ("completionStartTime", "createdAt", "updatedAt"),
    "io": ("input", "output"),
    "metadata": ("metadata",),
    "model": ("model", "internalModelId", "modelParameters"),
    "usage": ("usageDetails", "inputUsage", "outputUsage", "totalUsage", "costDetails", "inputCost", "outputCost",
              "totalCost", "usagePricingTierId", "usagePricingTierName"),
    "prompt": ("promptId", "promptName", "promptVersion"),
    "metrics": (),
    "trace_context": ("traceName", "release", "tags"),
}  # fmt: skip
ALWAYS = ("latency", "timeToFirstToken", "modelId", "inputPrice", "outputPrice", "totalPrice")
EMPTY: dict[str, Any] = {
    "projectId": "proj-test", "parentObservationId": "", "type": "SPAN", "name": "", "level": "DEFAULT",
    "statusMessage": "", "version": "", "environment": "default", "userId": "", "sessionId": "", "bookmarked": False,
    "public": False, "completionStartTime": None, "input": None, "output": None, "metadata": {}, "model": "",
    "internalModelId": "", "modelParameters": {}, "usageDetails": {}, "inputUsage": 0, "outputUsage": 0,
    "totalUsage": 0, "costDetails": {}, "inputCost": None, "outputCost": None, "totalCost": 0, "promptId": "",
    "promptName": "", "promptVersion": None, "usagePricingTierId": None, "usagePricingTierName": None,
    "latency": None, "timeToFirstToken": None, "traceName": "", "release": "", "tags": [], "modelId": None,
    "inputPrice": None, "outputPrice": None, "totalPrice": None,
}  # fmt: skip
FILTERS = {"traceId", "sessionId", "userId", "name", "type", "level", "version"}
_HELD: WeakKeyDictionary[FakeLangfuse, Observations]


@dataclass
class Held:
    """A row, and from when on it is seen (seconds, by the clock of the fake)."""

    row: dict[str, Any]
    visible_at: float


class Observations:
    def __init__(self, fake: FakeLangfuse) -> None:
        self._fake = fake
        self.held: list[Held] = []
        self.clock: Callable[[], float] = time.monotonic
        """A test whose clock is its own sets it here: else a quick machine has ended before a late row is seen."""
        self.twice = False
        """Whether every row comes twice, the older version with another name."""

    @staticmethod
    def part(fake: FakeLangfuse) -> list[Route]:
        made = _HELD[fake] = Observations(fake)
        return [
            ("GET", "/v2/observations", made._v2),
            ("GET", "/traces", made._traces),
            ("GET", "/traces/([^/]+)", made._trace),
        ]

    def put(self, *rows: Mapping[str, Any], after_s: float = 0.0) -> None:
        """Store rows; what they do not say is empty. `after_s`: how late they are seen."""
        with self._fake.guard:
            for row in rows:
                whole = {**EMPTY, "createdAt": self._fake.now, "updatedAt": self._fake.now, **row}
                whole.setdefault("isRootObservation", not whole["parentObservationId"])
                self.held.append(Held(whole, self.clock() + after_s))

    def rows(self) -> list[dict[str, Any]]:
        """What is visible now."""
        now = self.clock()
        with self._fake.guard:
            return [held.row for held in self.held if held.visible_at <= now]

    def _v2(self, request: Request) -> Act:
        if self._fake.mode is Mode.V3:
            stated = "v2 APIs are currently only available on Langfuse Cloud"
            return answer({"message": stated, "error": "LangfuseNotFoundError"}, 404)
        params = request.params
        limit = int(params.get("limit", "50"))
        if limit > 1000:
            return invalid(_too_big("limit", 1000))
        selected = _selection(params)
        found = [row for row in self.rows() if selected(row)]
        found = sorted(found, key=lambda r: (r["startTime"], hash(r["traceId"]), r["id"]), reverse=True)
        if self.twice:
            old = "2020-01-01T00:00:00.000Z"
            found = [each for row in found for each in ({**row, "name": "older", "updatedAt": old}, row)]
        at = 0
        if "cursor" in params:
            try:
                at = int(json.loads(base64.b64decode(params["cursor"], validate=True))["at"])
            except (ValueError, KeyError):
                return answer({"message": "Invalid cursor format", "error": "InvalidRequestError"}, 400)
        page = found[at : at + limit]
        more = at + limit < len(found)
        cursor = base64.b64encode(json.dumps({"at": at + limit}).encode()).decode()
        groups = set(params.get("fields", "core,basic").split(",")) | {"core"}
        return answer({"data": [_projected(row, groups) for row in page], "meta": {"cursor": cursor} if more else {}})

    def _traces(self, request: Request) -> Act:
        if self._fake.mode in (Mode.EVENTS_ONLY, Mode.NEW):
            return answer({"message": EVENTS_ONLY}, 404)
        params = request.params
        limit, page = int(params.get("limit", "50")), int(params.get("page", "1"))
        if limit > 100:
            return invalid(_too_big("limit", 100))
        begin, end = (_at(params[name]) if name in params else None for name in ("fromTimestamp", "toTimestamp"))
        found = [
            trace
            for trace in self._assembled(self.rows()).values()
            if params.get("sessionId") in (None, trace["sessionId"])
            and (begin is None or _at(trace["timestamp"]) >= begin)
            and (end is None or _at(trace["timestamp"]) < end)
        ]
        found.sort(key=lambda trace: trace["timestamp"], reverse=params.get("orderBy") != "timestamp.asc")
        reported = [
            {**trace, "observations": [each["id"] for each in trace["observations"]], "totalCost": 0, "latency": 0,
             "htmlPath": f"/project/proj-test/traces/{trace['id']}"}
            for trace in found[(page - 1) * limit : page * limit]
        ]  # fmt: skip
        meta = {"page": page, "limit": limit, "totalItems": len(found), "totalPages": -(-len(found) // limit)}
        return answer({"data": reported, "meta": meta})

    def _trace(self, request: Request) -> Act:
        if self._fake.mode in (Mode.EVENTS_ONLY, Mode.NEW):
            return answer({"message": EVENTS_ONLY}, 404)
        trace = self._assembled(row for row in self.rows() if row["traceId"] == request.args[0]).get(request.args[0])
        if trace is None:
            stated = f"Trace {request.args[0]} not found within authorized project"
            return answer({"message": stated, "error": "LangfuseNotFoundError"}, 404)
        html = f"/project/proj-test/traces/{trace['id']}"
        whole = {**trace, "observations": [_v1(row) for row in trace["observations"]]}
        return answer({**whole, "latency": 0, "totalCost": 0, "htmlPath": html})

    @staticmethod
    def _assembled(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Traces with their rows: what any of them says of its trace holds, and what a root says goes before."""
        traces: dict[str, dict[str, Any]] = {}
        for row in sorted(rows, key=lambda row: (row["startTime"], not row["isRootObservation"])):
            trace = traces.get(row["traceId"]) or traces.setdefault(row["traceId"], _trace_of(row))
            for field in ("userId", "sessionId", "release", "tags"):
                trace[field] = trace[field] or row[field] or trace[field]
            stated = _reported(row, "trace")
            trace["metadata"] = {**trace["metadata"], **stated} if not row["parentObservationId"] else {
                **stated, **trace["metadata"],
            }  # fmt: skip
            trace["observations"].append(row)
        return traces


_HELD = WeakKeyDictionary()


def observations_of(fake: FakeLangfuse) -> Observations:
    return _HELD[fake]


def _projected(row: Mapping[str, Any], groups: Iterable[str]) -> dict[str, Any]:
    keys = [key for group in GROUPS if group in groups for key in GROUPS[group]]
    reported = {key: row[key] for key in (*keys, *ALWAYS)}
    if "metadata" in reported and "io" not in groups:
        reported["metadata"] = {key: _cut(value) for key, value in reported["metadata"].items()}
    return reported


def _cut(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    return value if len(text) <= 200 else text[:200]


def _trace_of(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": row["traceId"], "projectId": "proj-test", "name": row["traceName"] or row["name"],
        "timestamp": row["startTime"], "environment": row["environment"], "tags": row["tags"], "bookmarked": False,
        "release": row["release"] or None, "version": row["version"] or None, "userId": row["userId"] or None,
        "sessionId": row["sessionId"] or None, "public": False, "input": _parsed(row["input"]),
        "output": _parsed(row["output"]), "metadata": {}, "createdAt": row["createdAt"],
        "updatedAt": row["updatedAt"], "externalId": None, "scores": [], "observations": [],
    }  # fmt: skip


def _v1(row: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is its trace's; contents parsed, metadata nested, empty texts null."""
    kept = ("id", "traceId", "startTime", "endTime", "projectId", "type", "environment", "name", "level", "createdAt",
            "updatedAt", "usageDetails", "costDetails")  # fmt: skip
    return {
        **{key: row[key] for key in kept}, "parentObservationId": row["parentObservationId"] or None,
        "statusMessage": row["statusMessage"] or None, "version": row["version"] or None,
        "model": row["model"] or None, "modelParameters": row["modelParameters"] or None,
        "input": _parsed(row["input"]), "output": _parsed(row["output"]), "metadata": _reported(row, "observation"),
        "latency": 0, "timeToFirstToken": None,
    }  # fmt: skip


def _reported(row: Mapping[str, Any], whose: str) -> dict[str, Any]:
    """Metadata as the legacy reads tell it: each entry was stored as text and is read once, what is in it not again."""
    if "v1" in row:
        return {key: _parsed(value) for key, value in row["v1"][whose].items()}
    return _nested(row["metadata"])


def _parsed(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in flat.items():
        head, _, rest = key.partition(".")
        if head in ("resourceAttributes", "attributes") and rest:
            found.setdefault(head, {})[rest] = value
        elif head == "scope" and rest:
            inner, _, last = rest.partition(".")
            scope = found.setdefault("scope", {})
            if last:
                scope.setdefault(inner, {})[last] = value
            else:
                scope[inner] = value
        else:
            found[key] = value
    return found


def _too_big(name: str, most: int) -> dict[str, Any]:
    stated = f"Too big: expected number to be <={most}"
    return {
        "origin": "number",
        "code": "too_big",
        "maximum": most,
        "inclusive": True,
        "path": [name],
        "message": stated,
    }


def _selection(params: Mapping[str, str]) -> Callable[[Mapping[str, Any]], bool]:
    """Which rows a request asks for. What it states is read once, not for each of thousands of rows."""
    wanted = [(key, params[key]) for key in FILTERS if key in params]
    wanted += [(each["column"], each["value"]) for each in json.loads(params.get("filter", "[]"))]
    roots = params["isRootObservation"] == "true" if "isRootObservation" in params else None
    begin, end = (_at(params[name]) if name in params else None for name in ("fromStartTime", "toStartTime"))

    def selected(row: Mapping[str, Any]) -> bool:
        if any(str(row.get(key)) != value for key, value in wanted):
            return False
        if roots is not None and row["isRootObservation"] is not roots:
            return False
        start = _at(row["startTime"])
        return (begin is None or start >= begin) and (end is None or start < end)

    return selected


@lru_cache(maxsize=10_000)
def _at(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def at_ns(ns: int) -> str:
    """A time as the server writes it."""
    return stamp(datetime.fromtimestamp(ns / 1e9, UTC))
