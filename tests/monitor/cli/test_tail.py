"""``tail`` and ``explain`` without an argument: the traces that ended, and through a restart of the monitor."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from sidejudge.monitor.cli.tail import Follow
from tests.otlp_requests import S, request, span, trace
from tests.running import Running

NOW = 1_790_000_000_000_000_000
LLM = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def ended(number, revision=1, **more):
    return {
        "trace_id": f"{number:032x}", "closed_ns": NOW + number * 10**9, "revision": revision, "reason": "scored",
        "service": "shop", "name": "order", "why": "it was scored", "verdicts": [], **more,
    }  # fmt: skip


class Asked:
    """Answers as ``/v1/traces`` does, two on a page."""

    def __init__(self):
        self.traces = []

    def __call__(self, query):
        newest = sorted(self.traces, key=lambda each: each["closed_ns"], reverse=True)
        if since := query.get("since"):
            since_ns = datetime.fromisoformat(since).timestamp() * 1e9
            newest = [each for each in newest if each["closed_ns"] >= since_ns]
        at = int(query.get("cursor", 0))
        more = at + 2 < len(newest)
        return {"traces": newest[at : at + 2], "next_cursor": str(at + 2) if more else None}


def ids(traces):
    return [(int(each["trace_id"], 16), each["revision"]) for each in traces]


def test_each_revision_is_shown_once_the_oldest_first_over_several_pages():
    asked = Asked()
    asked.traces = [ended(1), ended(2)]
    follow = Follow(asked, {}, 1)
    assert ids(follow.more()) == [(2, 1)], "of the earlier ones the latest"
    assert ids(follow.more()) == []
    asked.traces += [ended(number) for number in (3, 4, 5, 6)]
    assert ids(follow.more()) == [(3, 1), (4, 1), (5, 1), (6, 1)]
    asked.traces[2] = ended(3, revision=2)
    assert ids(follow.more()) == [(3, 2)]


@pytest.mark.parametrize("latest", [0, 1, 5, 30])
def test_at_first_as_many_are_shown_as_are_asked_for_however_many_a_page_holds(latest):
    asked = Asked()
    asked.traces = [ended(number) for number in range(1, 31)]
    follow = Follow(asked, {}, latest)
    assert ids(follow.more()) == [(number, 1) for number in range(31 - latest, 31)]
    assert ids(follow.more()) == [], "what is requested again was there before"


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], ["a", "b", "c"]),
        (["--rubric", "qa"], ["a", "b"]),
        (["--rubric", "qa", "--state", "failed"], ["b"]),
        (["--state", "incomplete"], ["c"]),
    ],
)
def test_filters_by_rubric_and_state(call, monitor_at, options, shown):
    def verdict(rubric, passed):
        return {"rubric": rubric, "passed": passed, "state": "valid" if passed is not None else "incomplete",
                "composite": 0.5}  # fmt: skip

    traces = [
        ended(3, name="c", verdicts=[verdict("text", None)]), ended(2, name="b", verdicts=[verdict("qa", False)]),
        ended(1, name="a", verdicts=[verdict("qa", True)]),
    ]  # fmt: skip
    url = monitor_at({"/v1/traces?limit=200": {"traces": traces, "next_cursor": None}})
    done = call("tail", "--url", url, "--seconds", 0, "--json", *options)
    assert [json.loads(line)["name"] for line in done.stdout.splitlines()] == shown
    assert done.exit_code == 0


def test_without_a_monitor_it_ends_with_the_remedy(call):
    done = call("tail", "--url", "http://127.0.0.1:9", "--seconds", 0)
    assert done.exit_code == 2
    assert "sidejudge serve" in done.stderr


def test_explain_without_an_argument_lists_the_last_traces_of_a_monitor(call, monitor_at):
    unmet = ended(2, reason="no_rubric", name="x\x1b[31m", why="shop: service: shop does not hold")
    url = monitor_at({"/v1/traces?reason=no_rubric&limit=20": {"traces": [unmet], "next_cursor": None}})
    done = call("explain", "--reason", "no_rubric", "--url", url)
    assert done.exit_code == 0, done.stderr
    assert "\x1b[31m" not in done.stdout
    assert "no_rubric" in done.stdout
    assert "service: shop does not hold" in done.stdout


def test_a_restart_of_the_monitor_is_waited_for_and_nothing_is_shown_twice(tmp_path: Path, call):
    running = Running(tmp_path).start()
    out = (tmp_path / "tail").open("wb")
    command = [sys.executable, "-P", "-m", "sidejudge", "tail", "--json", "--url", running.api]
    tail = None

    def send(number):
        body = request([S(trace_id=trace(number), span_id=span(number + 1), attributes=LLM)])
        running.http.post(
            f"{running.otlp}/v1/traces", content=body, headers={"content-type": "application/x-protobuf"}
        ).raise_for_status()

    def shown(count):
        end = time.monotonic() + 60
        while True:
            lines = (tmp_path / "tail").read_text().splitlines()
            if len(lines) >= count:
                return [json.loads(line)["trace_id"] for line in lines]
            assert time.monotonic() < end, (tmp_path / "errors").read_text()
            time.sleep(0.2)

    try:
        with (tmp_path / "errors").open("wb") as errors:
            tail = subprocess.Popen(command, stdout=out, stderr=errors)
        send(1)
        shown(1)
        running.stop()
        time.sleep(2.5)
        running.start()
        send(2)
        assert shown(2) == [trace(1).hex(), trace(2).hex()]
        assert "waiting for it" in (tmp_path / "errors").read_text()
        listed = call("explain", "--store", tmp_path / "state.sqlite", "-n", 1)
        assert trace(2).hex() in listed.stdout
        assert trace(1).hex() not in listed.stdout
    finally:
        if tail is not None:
            tail.terminate()
            tail.wait(10)
        out.close()
        running.close()
