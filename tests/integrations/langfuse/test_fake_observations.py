"""The fake's observations are held to the recordings: requests get the recorded status and the recorded fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from sidejudge.integrations.otlp.wire.decode import decode_spans
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode

NAMES = (
    "observations-v2-all-fields-trace", "observations-v2-bad-cursor", "observations-v2-bad-fields",
    "observations-v2-io", "observations-v2-level-error", "observations-v2-limit-1001", "observations-v2-list-page1",
    "observations-v2-roots", "observations-v2-time-window-empty", "observations-v2-type-tool",
    "observations-v2-unknown-param", "observations-v2-unknown-trace", "observations-v2-filter-json",
)  # fmt: skip
LEGACY = ("traces-list-page1", "traces-list-limit-101", "traces-list-filter-time", "traces-list-order-asc",
          "traces-list-page-beyond", "trace-get", "trace-get-404")  # fmt: skip


def exchange(shared: Path, name: str) -> dict[str, Any]:
    return json.loads((shared / "contracts" / "langfuse-recordings" / f"{name}.json").read_text())


def replayed(fake: FakeLangfuse, made: dict[str, Any]) -> httpx.Response:
    auth = httpx.BasicAuth(PUBLIC_KEY, SECRET_KEY)
    return httpx.get(fake.base_url + made["request"]["path"], params=made["request"]["query"], auth=auth)


@pytest.mark.parametrize("mode", ["dual", "events_only"])
def test_reads_of_observations_are_answered_as_recorded(shared, mode):
    whole = exchange(shared, f"observations-v2-all-fields-trace.{mode}")["response"]["body"]["data"]
    others = exchange(shared, f"observations-v2-io.{mode}")["response"]["body"]["data"]
    with FakeLangfuse(Mode.DUAL if mode == "dual" else Mode.EVENTS_ONLY, parts=[Observations.part]) as fake:
        observations_of(fake).put(*whole, *others)
        for name in NAMES:
            made = exchange(shared, f"{name}.{mode}")
            got, reported = replayed(fake, made), made["response"]
            assert got.status_code == reported["status"], name
            if reported["status"] != 200:
                assert got.json() == reported["body"], name
                continue
            body = got.json()
            assert ("cursor" in body["meta"]) == ("cursor" in reported["body"]["meta"]) or name.endswith("-json"), name
            assert bool(body["data"]) == bool(reported["body"]["data"]), name
            if body["data"]:
                assert set(body["data"][0]) == set(reported["body"]["data"][0]), name
        made = exchange(shared, f"observations-v2-all-fields-trace.{mode}")
        assert replayed(fake, made).json()["data"] == sorted(
            whole, key=lambda r: (r["startTime"], hash(r["traceId"]), r["id"]), reverse=True
        )


def test_legacy_reads_are_answered_as_recorded(shared):
    whole = exchange(shared, "observations-v2-all-fields-trace.dual")["response"]["body"]["data"]
    others = exchange(shared, "observations-v2-io.dual")["response"]["body"]["data"]
    with FakeLangfuse(Mode.DUAL, parts=[Observations.part]) as fake:
        observations_of(fake).put(*whole, *({**row, "tags": ["x"], "traceName": "t", "release": "r"} for row in others))
        for name in LEGACY:
            made = exchange(shared, f"{name}.dual")
            got, reported = replayed(fake, made), made["response"]
            assert got.status_code == reported["status"], name
            if reported["status"] != 200:
                assert got.json() == reported["body"], name
            elif "data" in reported["body"]:
                assert set(got.json()["meta"]) == set(reported["body"]["meta"]), name
                first, recorded = (body["data"][:1] for body in (got.json(), reported["body"]))
                assert [set(each) for each in first] == [set(each) for each in recorded], name
            else:
                assert set(reported["body"]) == set(got.json())
                recorded = {each["id"]: each for each in reported["body"]["observations"]}
                for each in got.json()["observations"]:
                    for field in ("input", "output", "parentObservationId", "type", "name", "level", "usageDetails"):
                        assert each[field] == recorded[each["id"]][field], (name, field)


def test_what_an_sdk_sends_is_told_as_it_was_recorded(shared):
    """The one trace of which both the request and what a server told of it were recorded."""
    import base64  # noqa: PLC0415  # only here

    sent = exchange(shared, "sdk-otlp-export.dual")["request"]["body"]
    rows = {row["id"]: row for row in rows_of(decode_spans(base64.b64decode(sent["$base64"])))}
    reported = exchange(shared, "sdk-observations-get-many.dual")["response"]["body"]["data"]
    compared = [row for row in reported if row["id"] in rows]
    assert compared
    for row in compared:
        made = rows[row["id"]]
        for field in set(row) & set(made) - {"metadata", "costDetails"}:  # it knows no prices
            same = (made[field] or None) == (row[field] or None)
            assert same, (row["name"], field, made[field], row[field])
        public_key = {"scope.attributes.public_key": "pk-lf-test"}  # which our decoder leaves out
        assert row.get("metadata", made["metadata"]).items() <= (made["metadata"] | public_key).items()
