"""Two monitors in processes of their own share a PostgreSQL: killed, stopped for a while, cut off."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from tests.end_to_end.test_judge import DEAR, judged_by, requested
from tests.fakes.judge import judges
from tests.fakes.langfuse import datasets
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.fakes.openai import Provider
from tests.needs import LITELLM
from tests.otlp_requests import S, request, span, trace
from tests.postgres_server import PostgresServer
from tests.running import Running

SECRET = "s3cret-Pass"
SAID = '[{"role": "assistant", "parts": [{"type": "text", "content": "three days"}]}]'


def fleet(monitor: Running) -> dict:
    return monitor.get("/v1/status")["fleet"]


def send(monitor: Running, first: int, count: int = 5) -> None:
    for number in range(first, first + count):
        assert monitor.post(request([S(trace_id=trace(number), span_id=span(number))])).status_code == 200


def test_two_monitors_archive_hand_over_and_go_on_alone(
    serving: Callable[..., Running], postgres: PostgresServer
) -> None:
    database = postgres.new_database()
    section = {"database": postgres.url(database), "every": "200ms", "timeout": "500ms", "lease": "1500ms"}
    first, second = (serving(fleet={**section, "name": name}) for name in ("a", "b"))
    both = [first, second]
    first.until(lambda: all(fleet(each)["monitors"] == 2 for each in both), "they do not see each other")

    # Each of them archives what it judged.
    for n, each in enumerate(both):
        send(each, 1 + 100 * n)
        each.settled(5)
    archived = "SELECT monitor, count(*) FROM sidejudge.results GROUP BY 1 ORDER BY 1"
    first.until(lambda: postgres.sql(archived, database) == [("a", 5), ("b", 5)], "results are missing", 20)

    # One that hangs loses its leases, and does not use them when it goes on.
    holder, other = both if "upkeep" in fleet(first)["leases"] else both[::-1]
    assert holder.process is not None
    holder.process.send_signal(signal.SIGSTOP)
    other.until(lambda: "upkeep" in fleet(other)["leases"], "nobody took over", 20)
    holder.process.send_signal(signal.SIGCONT)
    assert "upkeep" not in fleet(holder)["leases"]
    tokens = postgres.sql("SELECT token FROM sidejudge.leases WHERE name = 'upkeep'", database)
    assert tokens == [(2,)]

    # The database goes: spans are taken, judged and kept; what is owed is caught up with.
    with postgres.stopped():
        first.until(lambda: fleet(first)["state"] == "retrying", "it was not noticed", 20)
        begun = time.monotonic()
        send(first, 201)
        assert time.monotonic() - begun < 2
        assert sum(first.settled(10)["ended"].values()) == 10
        metrics = first.http.get(f"{first.api}/metrics").text
        assert 'sidejudge_connection_state{connection="fleet.database",state="retrying"} 1.0' in metrics
        page = first.http.get(f"{first.api}/").text
        assert "This monitor goes on alone" in page
        assert (
            SECRET
            not in page + metrics + str(first.get("/v1/status")) + first.http.get(f"{first.api}/configuration").text
        )
    first.until(lambda: dict(postgres.sql(archived, database))["a"] == 10, "it did not catch up", 40)
    assert fleet(first)["state"] == "ok"

    # An end in order gives everything back at once; a kill after the time of the leases.
    assert other.stop() == 0
    holder.until(lambda: "upkeep" in fleet(holder)["leases"], "the leases were not given back", 5)
    assert SECRET not in first.log_file.read_text() + second.log_file.read_text()


@LITELLM.mark
def test_two_monitors_spend_one_budget(serving: Callable[..., Running], postgres: PostgresServer) -> None:
    database, limit = postgres.new_database(), 5.0
    section = {"database": postgres.url(database), "every": "200ms", "timeout": "1s", "lease": "3s"}
    with Provider(judges()) as provider:
        judged = judged_by(provider, price=DEAR, budget_usd_per_hour=limit, cache_entries=0)
        both = [serving(fleet={**section, "name": name}, **judged) for name in ("a", "b")]
        granted = "SELECT count(*) FROM sidejudge.judge_spend WHERE granted > 0"
        both[0].until(lambda: all(fleet(each)["state"] == "ok" for each in both), "they do not reach it", 20)
        both[0].until(lambda: postgres.sql(granted, database)[0][0] >= 2, "no slices were granted", 20)
        for number in range(120):
            assert both[number % 2].post(requested(number + 1)).status_code == 200
        ended = [each.settled(60)["ended"] for each in both]
    assert all(each["scored"] > 0 for each in ended), "each has its share"
    assert sum(each["over_budget"] for each in ended) > 0, "which is not enough for all"
    hours = postgres.sql("SELECT sum(granted), sum(spent) FROM sidejudge.judge_spend GROUP BY hour", database)
    assert all(spent <= granted <= limit + 1e-9 for granted, spent in hours)


def answered(number: int) -> S:
    said = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": SAID}
    return S(trace_id=trace(number), span_id=span(number), attributes=said)


def test_references_that_one_monitor_reads_are_anothers_that_cannot_reach_langfuse(
    serving: Callable[..., Running], postgres: PostgresServer
) -> None:
    with FakeLangfuse(Mode.NEW, parts=[datasets.part]) as langfuse:
        datasets.datasets_of(langfuse)["golden"] = [datasets.item("three days", sourceTraceId=trace(1).hex())]
        database = postgres.new_database()
        section = {"database": postgres.url(database), "every": "200ms"}
        access = {"base_url": langfuse.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY, "timeout": "500ms"}
        shared = {"sinks": {"langfuse": access}, "references": [{"langfuse_dataset": "golden"}]}
        reader = serving(fleet={**section, "name": "a"}, **shared)
        reader.until(lambda: fleet(reader)["state"] == "ok", "there are no tables", 20)
        kept = "SELECT count(*) FROM sidejudge.states WHERE starts_with(name, 'references/')"
        reader.until(lambda: postgres.sql(kept, database) == [(2,)], "it shares nothing", 20)
    other = serving(fleet={**section, "name": "b"}, routes=[{"rubrics": ["text"]}], **shared)
    other.until(lambda: dict(fleet(other)["rounds"]).get("ok", 0) > 0, "it is alone", 20)
    assert other.post(request([answered(1), answered(2)])).status_code == 200
    other.settled(2)
    without = {each["trace_id"] for each in other.verdicts() if "no expected_outcome" in each["reason"]}
    assert without == {trace(2).hex()}
