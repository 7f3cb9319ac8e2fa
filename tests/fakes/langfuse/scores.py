"""The fake's scores: what is refused at once, what is dropped later without a word, how writes of one id come together.

Up to 4.16 all writes of an id are merged into one row (``merging.py``); one score a request is stamped with the time at
which it came (``web/src/pages/api/public/scores/index.ts``), an event of ``ingestion`` brings its own.

What a newer server does with an array is known by its documentation only: the time of a score is the one that it names,
and a score that is sent again with id and time is replaced, by the later of two requests. It is taken to be kept by id,
name and UTC date, as 4.16 keeps it. Its ``ingestion``, where it has one, is taken for that of 4.16.

A deletion is queued (``ScoreDeleteQueue``): it takes the row and all events of the score, those too that came after
it was asked for. Here it is done at once, or ``deletes_after_s`` later. A person's edit (``edit``) changes the row, not
the events, names the person, and leaves metadata and ``updatedAt`` as they are (``updateAnnotationScore``).
"""

from __future__ import annotations

import base64
import json
import math
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.fakes.langfuse.merging import files, merged
from tests.fakes.langfuse.server import EVENTS_ONLY, FakeLangfuse, Mode, Request, Route, answer, invalid, page
from tests.fakes.openai import Act

_ONE_SUBJECT = (
    "Provide exactly one of the following: traceId (with optional observationId), sessionId or datasetRunId. "
    "ObservationId requires traceId."
)
_TYPES = {"NUMERIC": "number", "BOOLEAN": "number", "CATEGORICAL": "string", "TEXT": "string", "CORRECTION": "string"}
_ROW = ("id", "name", "source", "dataType", "environment", "configId", "queueId", "authorUserId")
_SUBJECT = ("traceId", "sessionId", "observationId")
_RANGES = ("value", "valueMin", "valueMax", "fromTimestamp", "toTimestamp")
_FILTERS = ("limit", "cursor", "fields", *_ROW, *_SUBJECT, "experimentId", *_RANGES)
_GROUPS = ("core", "details", "subject", "annotation")
_CORE = ("id", "projectId", "name", "source", "timestamp", "environment", "createdAt", "updatedAt")


class Scores:
    """The stored rows, and how they come and go."""

    def __init__(self, fake: FakeLangfuse) -> None:
        self._fake = fake
        self._rows: dict[tuple[str, ...], list[tuple[float, dict[str, Any]]]] = {}
        """By id, of newer servers by id, name and date: the row after each write, and when that was."""
        self._files: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
        """By id and name of the file: the events of the blob store."""
        self._deletions: list[tuple[float, str]] = []
        self.deletes_after_s = 0.0
        """How long a deletion waits in its queue."""
        self._forgetting = False
        self.loses_every = 0
        """Of so many writings the last is accepted and dropped; 0: none is."""
        self.takes_up: Callable[[list[Any]], Iterable[Any]] = iter
        """In which order the scores of one request are stored."""
        self._given = 0
        self.takes_events = True
        """Whether ``POST ingestion`` is there; recorded servers all have it, and it may go."""
        self.written = 0
        """Writes that were accepted and not dropped."""

    def routes(self) -> list[Route]:
        return [
            ("POST", "/scores", self._post),
            ("DELETE", "/scores/([^/]+)", self._delete),
            ("GET", "/scores", self._legacy),
            ("GET", "/v2/scores", self._legacy),
            ("GET", "/v3/scores", self._list),
            ("POST", "/ingestion", self._ingest),
        ]

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        self._forgetting = True
        try:
            yield
        finally:
            self._forgetting = False

    def stored(self) -> list[dict[str, Any]]:
        """All rows as they are stored, visible or not yet."""
        with self._fake.guard:
            self._delete_due()
            return [self._shown(writes[-1][1]) for writes in self._rows.values()]

    def clear(self) -> None:
        """Forget everything."""
        with self._fake.guard:
            self._rows.clear()
            self._files.clear()

    def edit(self, name: str, **changed: Any) -> None:
        """As a person does it in the interface: metadata and ``updatedAt`` stay, and the person is named."""
        changed = {"source": "ANNOTATION", "authorUserId": "user-1", **changed}
        with self._fake.guard:
            for writes in self._rows.values():
                if writes[-1][1]["id"] == name:
                    writes.append((writes[-1][0], {**writes[-1][1], **changed}))

    def remove(self, name: str) -> None:
        """As a person does it in the interface, done at once."""
        with self._fake.guard:
            self._deletions.append((0.0, name))
            self._delete_due()

    def add(self, **score: Any) -> None:
        """A score that somebody else wrote: as the interface does it, over what was there."""
        with self._fake.guard:
            given = self._fitted({"id": str(uuid.uuid4()), "source": "API", "environment": "default", **score})
            if given is None:
                return
            at, name = score.get("timestamp") or self._fake.now, given["id"]
            new = (name, given["name"], at[:10]) if self._fake.mode is Mode.NEW else (name,)
            key = next((key for key in self._rows if key[0] == name), new)
            created = self._rows[key][-1][1]["createdAt"] if key in self._rows else self._fake.now
            self._keep(key, {**given, "timestamp": at, "createdAt": created})

    def _post(self, request: Request) -> Act:
        if "application/json" not in request.headers.get("content-type", ""):
            return invalid(_type([], "object", request.raw.decode("utf-8", "replace") or {}), _type([], "object", ""))
        body = request.body if request.raw else {}
        if isinstance(body, list):
            return self._array(body)
        if not isinstance(body, dict):
            return invalid(_type([], "object", body), _type([], "object", body))
        issues = _issues(body)
        if issues:
            return invalid(*issues)
        body = {**body, "id": body.get("id") or str(uuid.uuid4())}
        bad_id = _id_issue(body["id"], ["body", "id"])
        if bad_id:
            return answer({"message": json.dumps([bad_id], indent=2)}, 400)
        ignored = self._fake.mode is not Mode.NEW
        self._store(body, self._fake.now if ignored or not body.get("timestamp") else body["timestamp"])
        return answer({"id": body["id"]})

    def _array(self, items: list[Any]) -> Act:
        if self._fake.mode is not Mode.NEW:
            return invalid(_type([], "object", items), _type([], "object", items))
        errors = []
        for item in self.takes_up(items):
            issues = _issues(item) if isinstance(item, dict) else [_type([], "object", item)]
            if isinstance(item, dict) and not issues and _id_issue(item.get("id", ""), ["id"]):
                issues = [_id_issue(item["id"], ["id"])]
            if issues:
                errors.append({"message": issues[0]["message"]})
            else:
                self._store(
                    {**item, "id": item.get("id") or str(uuid.uuid4())}, item.get("timestamp") or self._fake.now
                )
        if errors:
            return answer({"accepted": len(items) - len(errors), "rejected": len(errors), "errors": errors}, 207)
        return answer({"message": "Accepted"}, 202)

    def _ingest(self, request: Request) -> Act:
        if not self.takes_events:
            return page()
        body = request.body
        if not isinstance(body, dict) or not isinstance(body.get("batch"), list):
            missing = isinstance(body, dict)
            what = "array, received undefined" if missing else f"object, received {_named(body)}"
            return answer({"message": "Invalid request data", "errors": [f"Invalid input: expected {what}"]}, 400)
        bearer = request.headers["authorization"].startswith("Bearer")
        done: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        events: list[Mapping[str, Any]] = []
        for event in body["batch"]:
            reported = event.get("id", "unknown") if isinstance(event, dict) else "unknown"
            kind = event.get("type") if isinstance(event, dict) else None
            # Unlike the other endpoint, this one lets the source EVAL through.
            issues = _issues({**event["body"], "source": "API"}) if kind == "score-create" else []
            if kind not in ("score-create", "trace-create", "span-create", "sdk-log"):
                issues = [{"code": "invalid_union", "path": ["type"], "message": "Invalid input"}]
            if not issues and not str(event.get("timestamp"))[:4].isdigit():
                issues = [{"code": "invalid_format", "path": ["timestamp"], "message": "Invalid ISO datetime"}]
            if issues:
                errors.append(
                    {"id": reported, "status": 400, "message": "Invalid request data", "error": json.dumps(issues)}
                )
            elif self._fake.mode in (Mode.EVENTS_ONLY, Mode.NEW) and kind not in ("score-create", "sdk-log"):
                errors.append(
                    {"id": reported, "status": 400, "message": "Event type not accepted", "error": EVENTS_ONLY}
                )
            elif bearer and kind != "score-create":
                errors.append(
                    {"id": reported, "status": 401, "message": "Authentication error", "error": "Access Scope Denied"}
                )
            else:
                done.append({"id": reported, "status": 201})
                events += [event] if kind == "score-create" else []
        self._take(list(self.takes_up(events)))
        return answer({"successes": done, "errors": errors}, 207)

    def _delete(self, request: Request) -> Act:
        self._deletions.append((time.monotonic() + self.deletes_after_s, request.args[0]))
        self._delete_due()
        return answer({"message": "Score deletion queued successfully"}, 202)

    def _delete_due(self) -> None:
        now = time.monotonic()
        due = {name for at, name in self._deletions if at <= now}
        self._deletions = [each for each in self._deletions if each[0] > now]
        for name in due:
            self._files.pop(name, None)
        self._rows = {key: writes for key, writes in self._rows.items() if key[0] not in due}

    def _legacy(self, request: Request) -> Act:
        if self._fake.mode in (Mode.EVENTS_ONLY, Mode.NEW):
            return answer({"message": EVENTS_ONLY}, 404)
        params = request.params
        ids, source = params.get("scoreIds"), params.get("source")
        limit, page = int(params.get("limit", "50")), int(params.get("page", "1"))
        if limit > 100:
            return _query_issue(params) or answer({}, 400)
        times = {name: params[name] for name in ("fromTimestamp", "toTimestamp") if name in params}
        rows = [
            row
            for row in self._visible(ids)
            if source in (None, row["source"]) and params.get("name") in (None, row["name"]) and _matches(row, times)
        ]
        meta = {"page": page, "limit": limit, "totalItems": len(rows), "totalPages": math.ceil(len(rows) / limit)}
        return answer({"data": [self._as_v2(row) for row in rows[(page - 1) * limit : page * limit]], "meta": meta})

    def _list(self, request: Request) -> Act:
        params = request.params
        problem = _query_issue(params)
        if problem:
            return problem
        limit = int(params.get("limit", "50"))
        rows = [row for row in self._visible(params.get("id")) if _matches(row, params)]
        if "cursor" in params:
            try:
                after = json.loads(base64.urlsafe_b64decode(params["cursor"] + "=="))
                rows = [r for r in rows if (r["timestamp"], r["id"]) < (after["lastTimestamp"], after["lastId"])]
            except (ValueError, KeyError, TypeError):
                return answer({"message": "Invalid cursor format", "error": "InvalidRequestError"}, 400)
        meta: dict[str, Any] = {"limit": limit}
        if len(rows) > limit:
            last = rows[limit - 1]
            cursor = json.dumps({"v": 1, "lastTimestamp": last["timestamp"], "lastId": last["id"]})
            meta["cursor"] = base64.urlsafe_b64encode(cursor.encode()).decode().rstrip("=")
        groups = {"core", *params.get("fields", "core").split(",")}
        return answer({"data": [_projected(row, groups) for row in rows[:limit]], "meta": meta})

    def _visible(self, ids: str | None) -> list[dict[str, Any]]:
        """Rows, the latest first; only those of these ids, separated by commas, where some are given."""
        self._delete_due()
        until = time.monotonic() - self._fake.visible_after_s
        wanted = None if ids is None else set(ids.split(","))
        found = [
            next((row for at, row in reversed(writes) if at <= until), None)
            for key, writes in self._rows.items()
            if wanted is None or key[0] in wanted
        ]
        rows = [self._shown(row) for row in found if row is not None]
        return sorted(rows, key=lambda row: (row["timestamp"], row["id"]), reverse=True)

    def _store(self, body: Mapping[str, Any], timestamp: str) -> None:
        """One score that came by itself, or in an array."""
        if self._fake.mode is not Mode.NEW:
            self._take([{"id": str(uuid.uuid4()), "timestamp": timestamp, "body": body}])
            return
        given = self._fitted(body)
        if given is not None:
            key = (given["id"], given["name"], timestamp[:10])
            before = self._rows.get(key)
            created = before[-1][1]["createdAt"] if before else self._fake.now
            self._keep(key, {**given, "timestamp": timestamp, "createdAt": created})

    def _take(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Events of one request: into the blob store, and from there over the rows."""
        for name, more in files(events).items():
            held = self._files.setdefault(name, {})
            fits = {
                file: [{**event, "body": body} for event in each if (body := self._fitted(event["body"])) is not None]
                for file, each in more.items()
            }
            held.update(fits)
            if any(fits.values()):
                key = next((key for key in self._rows if key[0] == name), (name,))
                before = self._rows[key][-1][1] if key in self._rows else None
                row = merged(before, [event for _, each in sorted(held.items()) for event in each])
                self._keep(key, {"createdAt": self._fake.now, **row})

    def _fitted(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        # The worker checks against the config, and drops what does not fit without a word.
        given = self._fake.configs.fitted({key: value for key, value in body.items() if key in _KNOWN})
        self._given += 1
        lost = self.loses_every and self._given % self.loses_every == 0
        if self._forgetting or lost or given is None:
            return None
        kind = given.get("dataType") or ("CATEGORICAL" if isinstance(given["value"], str) else "NUMERIC")
        return {**given, "dataType": kind}

    def _keep(self, key: tuple[str, ...], row: dict[str, Any]) -> None:
        self._rows.setdefault(key, []).append((time.monotonic(), {**row, "updatedAt": self._fake.now}))
        self.written += 1

    def _shown(self, row: Mapping[str, Any]) -> dict[str, Any]:
        kind = row["dataType"]
        return {
            "projectId": self._fake.project["id"], "comment": None, "configId": None, "queueId": None,
            "authorUserId": None, "traceId": None, "observationId": None, "sessionId": None, "source": "API",
            **row, "metadata": row.get("metadata") or {},
            "dataType": kind, "name": "output" if kind == "CORRECTION" else row["name"],
            "environment": _environment(row.get("environment")),
            "value": bool(row["value"]) if kind == "BOOLEAN" else row["value"],
        }  # fmt: skip

    def _as_v2(self, row: Mapping[str, Any]) -> dict[str, Any]:
        text = row["value"] if isinstance(row["value"], str) else None
        truth = str(row["value"]) if isinstance(row["value"], bool) else None
        reported = {
            k: row[k]
            for k in (
                *_CORE,
                "comment",
                "metadata",
                "configId",
                "queueId",
                "authorUserId",
                "traceId",
                "observationId",
                "sessionId",
                "dataType",
            )
        }
        return {
            **reported, "value": 0 if text is not None else float(row["value"]),
            "executionTraceId": None, "datasetRunId": None,
            "stringValue": text or truth,
        }  # fmt: skip


_KNOWN = [
    "id",
    "traceId",
    "observationId",
    "sessionId",
    "datasetRunId",
    "name",
    "value",
    "dataType",
    "comment",
    "metadata",
    "environment",
    "source",
    "configId",
    "queueId",
    "authorUserId",
]


def _issues(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the schema of a score has against it."""
    kind = body.get("dataType")
    if kind is not None and kind not in _TYPES:
        more = {"errors": [], "note": "No matching discriminator", "discriminator": "dataType"}
        return [_issue("invalid_union", ["dataType"], "Invalid input", **more)]
    issues = [*_field_issues(body), *_value_issues(kind, body.get("value", ...))]
    return issues or _subject_issues(body)


def _field_issues(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    issues = []
    if "id" in body and not isinstance(body["id"], str | None):
        issues.append(_type(["id"], "string", body["id"]))
    if not isinstance(body.get("name"), str):
        issues.append(_type(["name"], "string", body.get("name", ...)))
    elif not body["name"]:
        stated = "Too small: expected string to have >=1 characters"
        issues.append(_issue("too_small", ["name"], stated, origin="string", minimum=1, inclusive=True))
    if not isinstance(body.get("comment"), str | None):
        issues.append(_type(["comment"], "string", body["comment"]))
    if body.get("source", "API") not in ("API", "ANNOTATION"):
        stated = 'Invalid option: expected one of "API"|"ANNOTATION"'
        issues.append(_issue("invalid_value", ["source"], stated, values=["API", "ANNOTATION"]))
    return issues


def _value_issues(kind: str | None, value: Any) -> list[dict[str, Any]]:
    if kind is None:
        if isinstance(value, str) or _is_number(value):
            return []
        errors = [[_type([], "string", value)], [_type([], "number", value)]]
        return [_issue("invalid_union", ["value"], "Invalid input", errors=errors)]
    if not (isinstance(value, str) if _TYPES[kind] == "string" else _is_number(value)):
        return [_type(["value"], _TYPES[kind], value)]
    if kind == "BOOLEAN" and value not in (0, 1):
        stated = "Value must be a number equal to either 0 or 1 for data type BOOLEAN"
        return [_issue("custom", ["value"], stated)]
    if kind == "TEXT" and len(value) > 500:
        stated = "Too big: expected string to have <=500 characters"
        return [_issue("too_big", ["value"], stated, origin="string", maximum=500, inclusive=True)]
    return []


def _subject_issues(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    subjects = [body.get(name) for name in ("traceId", "sessionId", "datasetRunId")]
    if sum(map(bool, subjects)) != 1 or (body.get("observationId") and not body.get("traceId")):
        return [_issue("custom", ["traceId", "sessionId", "datasetRunId", "observationId"], _ONE_SUBJECT)]
    if body.get("source") == "ANNOTATION" and not body.get("configId") and body.get("dataType") != "CORRECTION":
        stated = "configId is required when source is ANNOTATION (except for CORRECTION scores)."
        return [_issue("custom", ["configId"], stated)]
    return []


def _issue(code: str, path: list[Any], message: str, **more: Any) -> dict[str, Any]:
    return {"code": code, "path": path, "message": message, **more}


def _id_issue(name: str, path: list[str]) -> dict[str, Any] | None:
    if "\r" in name:
        return {"code": "custom", "path": path, "message": "ID cannot contain carriage return characters"}
    if len(name) > 800:
        return {
            "origin": "string",
            "code": "too_big",
            "maximum": 800,
            "inclusive": True,
            "path": path,
            "message": "Too big: expected string to have <=800 characters",
        }
    return None


def _query_issue(params: Mapping[str, str]) -> Act | None:
    unknown = [name for name in params if name not in _FILTERS and name != "userId"]
    if unknown:
        return invalid(
            {"code": "unrecognized_keys", "keys": unknown, "path": [], "message": f'Unrecognized key: "{unknown[0]}"'}
        )
    if int(params.get("limit", "50")) > 100:
        return invalid(
            {
                "origin": "number",
                "code": "too_big",
                "maximum": 100,
                "inclusive": True,
                "path": ["limit"],
                "message": "Too big: expected number to be <=100",
            }
        )
    for index, group in enumerate(params.get("fields", "core").split(",")):
        if group not in _GROUPS:
            listed = "|".join(f'"{name}"' for name in _GROUPS)
            return invalid(
                {
                    "code": "invalid_value",
                    "values": list(_GROUPS),
                    "path": ["fields", index],
                    "message": f"Invalid option: expected one of {listed}",
                }
            )
    stated = None
    if "userId" in params:
        stated = "userId filter requires a trace JOIN and is not supported in v3 — use v2 or omit this filter"
    elif sum(name in params for name in ("traceId", "sessionId", "experimentId")) > 1:
        stated = "At most one of traceId, sessionId, experimentId may be specified"
    elif "observationId" in params and "traceId" not in params:
        stated = "observationId filter requires traceId — observation IDs are scoped to a trace"
    return invalid({"code": "custom", "message": stated, "path": []}) if stated else None


def _matches(row: Mapping[str, Any], params: Mapping[str, str]) -> bool:
    for name in (*_ROW, *_SUBJECT):
        if name in params:
            wanted = params[name].upper() if name in ("source", "dataType") else params[name]
            if str(row[name]) not in map(str.strip, wanted.split(",")):
                return False
    value = row["value"]
    if "value" in params and json.dumps(value).strip('"') not in params["value"].split(","):
        return False
    if "valueMin" in params and not (_is_number(value) and value >= float(params["valueMin"])):
        return False
    if "valueMax" in params and not (_is_number(value) and value <= float(params["valueMax"])):
        return False
    if "fromTimestamp" in params and row["timestamp"] < params["fromTimestamp"]:
        return False
    return not ("toTimestamp" in params and row["timestamp"] >= params["toTimestamp"])


def _projected(row: Mapping[str, Any], groups: set[str]) -> dict[str, Any]:
    reported = {name: row[name] for name in _CORE}
    if "details" in groups:
        reported |= {name: row[name] for name in ("comment", "configId", "metadata")}
    if "annotation" in groups:
        reported |= {name: row[name] for name in ("authorUserId", "queueId")}
    if "subject" in groups:
        if row["sessionId"]:
            reported["subject"] = {"kind": "session", "id": row["sessionId"]}
        elif row["observationId"]:
            reported["subject"] = {"kind": "observation", "id": row["observationId"], "traceId": row["traceId"]}
        else:
            reported["subject"] = {"kind": "trace", "id": row["traceId"]}
    return {**reported, "dataType": row["dataType"], "value": row["value"]}


def _environment(text: str | None) -> str:
    text = (text or "default").lower()[:40]
    while text.startswith("langfuse"):
        text = text.removeprefix("langfuse").lstrip("-_")
    return text if text and all(c.isascii() and (c.isalnum() or c in "-_") for c in text) else "default"


def _type(path: list[Any], expected: str, value: Any) -> dict[str, Any]:
    return {
        "expected": expected,
        "code": "invalid_type",
        "path": path,
        "message": f"Invalid input: expected {expected}, received {_named(value)}",
    }


def _named(value: Any) -> str:
    if value is ...:
        return "undefined"
    names = {
        bool: "boolean",
        int: "number",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
        type(None): "null",
    }
    return names[type(value)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
