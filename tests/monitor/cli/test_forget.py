"""``sidejudge forget``: afterwards no byte of a forgotten trace is in the store, and everything else is."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing, contextmanager
from types import SimpleNamespace

import pytest

from sidejudge.integrations.history.reading import history_records
from sidejudge.integrations.store.archive import opened
from sidejudge.integrations.store.erasure import erase
from sidejudge.integrations.store.notification_outbox import Entry
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from tests.fakes.judge import judges
from tests.fakes.langfuse import datasets
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, error
from tests.fakes.openai import Provider
from tests.needs import LITELLM, PYARROW
from tests.otlp_requests import S, request, span, trace

CANARY = "canary-4711-of-ann"


@pytest.fixture
def stored(serving):
    """A store with three traces of two users, one of which is still open; the monitor has ended."""
    monitor = serving(assembly={"grace": "100ms", "idle": "10m"})

    def sent(number, user, **more):
        attributes = {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "user.id": user, "session.id": f"s-{user}",
            "gen_ai.input.messages": f'[{{"role":"user","parts":[{{"type":"text","content":"{CANARY} {user}"}}]}}]',
        }  # fmt: skip
        body = request([S(trace_id=trace(number), span_id=span(number), attributes=attributes, **more)])
        assert monitor.post(body).status_code == 200

    sent(1, "ann")
    sent(2, "bob")
    monitor.until(lambda: len(monitor.verdicts()) == 2, "no verdicts")
    sent(3, "ann", parent_id=span(99))  # its parent never comes: it stays open
    monitor.stop()
    return monitor.folder / "state.sqlite"


def held(path, text):
    """Whether the text stands anywhere in the files of the store."""
    return any(text.encode() in file.read_bytes() for file in path.parent.glob("state.sqlite*") if file.is_file())


def test_a_user_is_forgotten_to_the_last_byte_and_nobody_else(call, stored):
    assert held(stored, f"{CANARY} ann")
    done = call("forget", "--user", "ann", "--store", str(stored), "--yes")
    assert done.exit_code == 0, done.output
    assert "forgot 2 traces" in done.output
    assert not held(stored, f"{CANARY} ann")
    assert not held(stored, trace(1).hex())
    assert held(stored, f"{CANARY} bob")
    assert call("forget", "--user", "ann", "--store", str(stored), "--yes").exit_code == 1


def test_items_that_were_made_of_failures_are_deleted_in_langfuse(call, tmp_path):
    Store(tmp_path / "state.sqlite").close()
    with FakeLangfuse(parts=[datasets.part]) as fake:
        held = datasets.datasets_of(fake)["failures"] = [
            datasets.item(None, id=f"i{number}", sourceTraceId=trace(number).hex()) for number in (1, 2)
        ]
        config = tmp_path / "sidejudge.yaml"
        config.write_text(
            f"store: {{path: {tmp_path / 'state.sqlite'}}}\n"
            f"sinks: {{langfuse: {{base_url: '{fake.base_url}', public_key: {PUBLIC_KEY}, secret_key: {SECRET_KEY}, "
            "failure_dataset: {name: failures}}}\n"
        )
        done = call("forget", trace(1).hex(), "--langfuse", "--yes", "--config", str(config))
        assert "dataset failures: deleted 1 item" in done.output
        assert [each["id"] for each in held] == ["i2"]
        assert "deleted" not in call("forget", trace(2).hex(), "--yes", "--config", str(config)).output


def test_whose_items_are_still_there_is_named_where_langfuse_is_away(call, serving):
    with FakeLangfuse(parts=[datasets.part]) as fake:
        keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
        monitor = serving(sinks={"langfuse": {**keys, "failure_dataset": {"name": "failures"}}})
        monitor.post(request([S(trace_id=trace(1), span_id=span(1), attributes={"user.id": "ann"})]))
        monitor.settled(1)
        fake.standing_fault = error(401)
        done = call("forget", "--user", "ann", "--langfuse", "--yes", "--config", str(monitor.config))
        assert done.exit_code != 0
        assert f"call it again with their trace ids: {trace(1).hex()}" in done.output


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ([trace(2).hex()], 1), (["--session", "s-ann"], 2), (["--before", "2100-01-01"], 3),
        ([trace(1).hex(), "--user", "bob"], 2),
    ],
)  # fmt: skip
def test_traces_are_chosen_by_id_session_and_age(call, stored, arguments, count):
    done = call("forget", *arguments, "--store", str(stored), "--yes")
    assert f"forgot {count} trace" in done.output


def test_a_trace_that_was_judged_again_later_is_as_old_as_it_was(call, stored):
    with closing(sqlite3.connect(stored)) as connection, connection:  # as by a reference that came late
        row = (trace(1), "again", time.time_ns() + 10**15, 1, b"")
        connection.execute("INSERT INTO judge_calls (trace_id, call, at_ns, size, body) VALUES (?, ?, ?, ?, ?)", row)
    soon = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(time.time() + 120))
    assert "forgot 3 traces" in call("forget", "--before", soon, "--store", str(stored), "--yes").output


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [([], "what is to be forgotten?"), (["xyz"], "is no trace id"), (["--before", "soon"], "is no time")],
)
def test_a_mistake_has_a_cause_and_a_remedy(call, tmp_path, arguments, cause):
    done = call("forget", *arguments, "--store", str(tmp_path / "s.sqlite"))
    assert done.exit_code == 2
    assert cause in done.output
    assert "remedy:" in done.output


def test_beside_a_monitor_that_runs_it_works_too(call, serving, stored):
    running = serving(store={"path": str(stored)})
    done = call("forget", "--user", "bob", "--store", str(stored), "--yes")
    assert "a monitor uses the store" in done.output
    assert running.answers("/readyz")
    judged = {verdict["trace_id"] for verdict in running.verdicts()}
    assert trace(1).hex() in judged
    assert trace(2).hex() not in judged


@pytest.mark.parametrize("when", ["open", "asked"], ids=["while it is open", "while the judge is asked"])
@LITELLM.mark
def test_a_trace_that_is_not_judged_yet_is_forgotten_and_ends_as_deleted(call, serving, when):
    with Provider(judges(delay_s=3)) as provider, FakeLangfuse() as fake:
        keys = {"public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
        monitor = serving(
            assembly={"grace": "100ms" if when == "asked" else "2s", "idle": "10m"}, routes=[{"rubrics": ["quality"]}],
            sinks={"langfuse": {"base_url": fake.base_url, **keys, "scores": "all"}},
            evaluators={
                "judge": {"model": "openai/gpt-4.1-mini-2025-04-14", "api_base": provider.url, "api_key": "k",
                          "keep_calls_bytes": "1MiB"},
            },
        )  # fmt: skip
        attributes = {
            "langfuse.observation.input": f"{CANARY} asks", "langfuse.observation.output": f"{CANARY} hears it",
            "langfuse.trace.metadata.expected_outcome": "nothing",
        }  # fmt: skip
        monitor.post(request([S(trace_id=trace(1), span_id=span(1), attributes=attributes)]))
        monitor.post(request([S(trace_id=trace(2), span_id=span(2), attributes={**attributes, "other": "yes"})]))
        if when == "asked":
            monitor.until(lambda: any(CANARY in str(seen.messages) for seen in provider.seen), "nobody was asked")
        done = call("forget", trace(1).hex(), "--config", str(monitor.config), "--yes")
        assert (done.exit_code, "forgot 1 trace" in done.output) == (0, True), done.output
        ended = monitor.settled(2)["ended"]
        assert (ended["deleted"], ended["scored"], ended["undecodable"]) == (1, 1, 0)
        monitor.until(lambda: any(row["traceId"] == trace(2).hex() for row in fake.scores.stored()), "no scores")
        assert {verdict["trace_id"] for verdict in monitor.verdicts()} == {trace(2).hex()}
        assert {row["traceId"] for row in fake.scores.stored()} == {trace(2).hex()}
        with closing(sqlite3.connect(monitor.folder / "state.sqlite")) as store:
            of = "SELECT DISTINCT trace_id FROM judge_calls"
            asked = {trace_id for (trace_id,) in store.execute(of)}
        assert asked <= {trace(2)}, "its prompt went, and its answers"
        assert "could not" not in monitor.log()
        assert monitor.answers("/readyz")


@LITELLM.mark
@PYARROW.mark
def test_a_trace_that_is_judged_again_is_forgotten_in_langfuse_and_in_the_history_too(call, serving, tmp_path):
    history = tmp_path / "history"
    with Provider(judges()) as provider, FakeLangfuse() as fake:
        keys = {"public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
        monitor = serving(
            assembly={"grace": "100ms", "idle": "10m"}, routes=[{"rubrics": ["quality"]}],
            sinks={"langfuse": {"base_url": fake.base_url, **keys, "scores": "all"},
                   "parquet": {"path": str(history), "every": "1h"}},
            evaluators={
                "judge": {"model": "openai/gpt-4.1-mini-2025-04-14", "api_base": provider.url, "api_key": "k",
                          "cache_entries": 0},
            },
        )  # fmt: skip
        attributes = {"langfuse.observation.input": "one asks", "user.id": "ann"}
        answered = {**attributes, "langfuse.observation.output": "one hears it"}
        monitor.post(request([S(trace_id=trace(n), span_id=span(n), attributes=answered) for n in (1, 2)]))
        monitor.until(lambda: len({row["traceId"] for row in fake.scores.stored()}) == 2, "no scores")
        monitor.until(lambda: monitor.get("/v1/status")["exports"][0]["waiting"] == 0, "some still wait")
        monitor.stop()  # which writes the history
        monitor.start()
        provider.standing, asked = judges(delay_s=3), len(provider.seen)
        fake.standing_fault = lambda sent: error(503)(sent) if sent.method == "DELETE" else None
        late = {**attributes, "langfuse.observation.output": "late", "langfuse.observation.type": "generation"}
        monitor.post(request([S(trace_id=trace(1), span_id=span(3), parent_id=span(1), attributes=late)]))
        monitor.until(lambda: len(provider.seen) > asked, "nobody was asked")
        done = call("forget", "--user", "ann", "--langfuse", "--config", str(monitor.config), "--yes")
        assert "forgot 2 traces" in done.output
        monitor.until(lambda: monitor.outcomes()["revisions"] == 1, "it has not ended")
        call("forget", trace(1).hex(), trace(2).hex(), "--config", str(monitor.config), "--yes")  # once more, not there
        monitor.stop()
        with closing(sqlite3.connect(monitor.folder / "state.sqlite")) as store, store:  # a minute later
            assert store.execute("UPDATE outbox SET due_ns = 0").rowcount
        fake.standing_fault = None
        monitor.start()
        monitor.until(lambda: not fake.scores.stored(), "scores of forgotten traces stay in Langfuse")
        monitor.stop()
        assert not list(history_records(str(history), "outcomes"))


@pytest.fixture
def conversing(serving):
    """A monitor whose judge answers late, with a conversation of two turns about which it is asked, once in time."""
    with Provider(judges(delay_s=2)) as provider:
        monitor = serving(
            assembly={"grace": "100ms"}, routes=[{"rubrics": ["run_health"]}],
            sessions={"sampling_rate": 1.0, "idle": "1s", "routes": [{"rubrics": ["quality"]}]},
            evaluators={"judge": {"model": "openai/gpt-4.1-mini-2025-04-14", "api_base": provider.url, "api_key": "k",
                                  "keep_calls_bytes": "1MiB"}},
        )  # fmt: skip
        monitor.post(request([asked_in_chat(1), asked_in_chat(2)]))
        monitor.until(lambda: provider.seen, "nobody was asked")
        provider.standing = judges(delay_s=30)
        yield monitor


def asked_in_chat(number, **more):
    attributes = {
        "langfuse.observation.input": f"{number} asks", "langfuse.observation.output": f"{number} hears it",
        "session.id": "chat", "langfuse.trace.metadata.expected_outcome": "nothing",
    }  # fmt: skip
    return S(**{"trace_id": trace(number), "span_id": span(number), "attributes": attributes, **more})


def of_conversations(monitor):
    """The verdicts on conversations, and how many calls of a judge are kept."""
    with closing(sqlite3.connect(monitor.folder / "state.sqlite")) as store:
        calls = store.execute("SELECT count(*) FROM judge_calls").fetchone()[0]
    return [verdict["passed"] for verdict in monitor.verdicts() if verdict["rubric"] == "quality"], calls


@pytest.mark.parametrize("when", ["asked", "judged"], ids=["while the judge is asked", "once it is judged"])
@LITELLM.mark
def test_with_a_turn_the_verdict_on_its_conversation_is_forgotten(call, conversing, when):
    if when == "judged":
        conversing.until(lambda: of_conversations(conversing)[1] == 1 and of_conversations(conversing)[0], "no verdict")
    done = call("forget", trace(1).hex(), "--config", str(conversing.config), "--yes")
    assert f"forgot {1 if when == 'asked' else 2} trace" in done.output
    time.sleep(3)  # in which the judge answers
    assert of_conversations(conversing) == ([], 0)
    assert [verdict["trace_id"] for verdict in conversing.verdicts()] == [trace(2).hex()]


@pytest.mark.parametrize("gone", ["turns", "conversation"], ids=["its turns are gone by age", "so is its verdict"])
@LITELLM.mark
def test_with_a_turn_that_is_gone_by_age_what_is_held_of_its_conversation_is_forgotten(call, conversing, gone):
    conversing.until(lambda: of_conversations(conversing)[1] == 1 and of_conversations(conversing)[0], "no verdict")
    conversing.stop()
    path = conversing.folder / "state.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        [(last_ns,)] = connection.execute("SELECT max(closed_ns) FROM traces")
    store = Store(path)
    for before_ns in (last_ns,) if gone == "turns" else (last_ns, last_ns + 1):
        asyncio.run(store.purge(before_ns))
        asyncio.run(store.contents.purge(before_ns, 10**9))
    asyncio.run(store.purge_turns(time.time_ns(), 0))
    assert len(store.verdicts()) == (gone == "turns")
    store.close()
    done = call("forget", trace(1).hex(), "--config", str(conversing.config), "--yes")
    assert "forgot 1 trace" in done.output, done.output
    with closing(sqlite3.connect(path)) as connection:
        assert not connection.execute("SELECT 1 FROM judge_calls").fetchall()
    assert not held(path, trace(1).hex())


@LITELLM.mark
def test_a_conversation_whose_turns_change_while_the_judge_is_asked_is_not_taken_for_forgotten(conversing):
    late = [asked_in_chat(number, span_id=span(9), parent_id=span(number)) for number in (1, 2)]
    conversing.post(request(late))
    conversing.until(lambda: conversing.outcomes()["revisions"] == 2, "the turns did not change")
    assert of_conversations(conversing)[0] == [], "the judge has answered before, so this test shows nothing"
    conversing.until(lambda: of_conversations(conversing)[0], "no verdict before it is judged again", seconds=15)


@LITELLM.mark
def test_what_outlives_its_trace_in_the_store_is_forgotten_too(call, serving):
    """Scores wait for Langfuse, turns for their conversation, and calls are kept for longer than verdicts."""
    with Provider(judges()) as provider, FakeLangfuse() as fake:
        keys = {"public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
        monitor = serving(
            assembly={"grace": "100ms", "idle": "10m"}, routes=[{"rubrics": ["quality"]}],
            sessions={"sampling_rate": 1.0, "idle": "1h", "routes": [{"rubrics": ["agent"]}]},
            sinks={"langfuse": {"base_url": fake.base_url, **keys, "scores": "all"}},
            evaluators={"judge": {"model": "openai/gpt-4.1-mini-2025-04-14", "api_base": provider.url, "api_key": "k",
                                  "keep_calls": "7d", "keep_calls_bytes": "1MiB"}},
        )  # fmt: skip
        fake.standing_fault = error(503)
        for number, user in ((1, "ann"), (2, "bob")):
            more = {"user.id": user, "session.id": f"s-{user}", "langfuse.trace.metadata.expected_outcome": "nothing",
                    "langfuse.observation.input": f"{CANARY} {user}", "langfuse.observation.output": user}  # fmt: skip
            monitor.post(request([S(trace_id=trace(number), span_id=span(number), attributes=more)]))
        monitor.until(lambda: len(monitor.verdicts()) == 2, "no verdicts")
        monitor.stop()
        path, later = monitor.folder / "state.sqlite", time.time_ns()
        store = Store(path)
        for _ in range(2):
            asyncio.run(store.purge(later))
        assert not store.verdicts()
        store.close()

        done = call("forget", "--user", "ann", "--config", str(monitor.config), "--yes")
        assert "forgot 1 trace" in done.output, done.output
        assert not held(path, f"{CANARY} ann")
        with closing(sqlite3.connect(path)) as of:
            for table in ("turns", "judge_calls", "outbox"):
                found = of.execute(f"SELECT DISTINCT trace_id FROM {table}").fetchall()
                assert found == [(trace(2),)], table
        fake.standing_fault = None
        monitor.start()
        monitor.until(fake.scores.stored, "no scores")
        monitor.until(lambda: not monitor.get("/v1/status")["exports"][0]["waiting"], "some scores still wait")
        assert {row["traceId"] for row in fake.scores.stored()} == {trace(2).hex()}


async def test_many_traces_are_forgotten_in_steps_between_which_a_monitor_writes(tmp_path, monkeypatch):
    path = tmp_path / "s.sqlite"
    store, ids = Store(path), [trace(number) for number in range(400)]
    for trace_id in ids:
        waits = Entry(destination="parquet", id=f"{trace_id.hex()}/1", body=f'{{"of":"{trace_id.hex()}"}}')
        await store.finish(
            FinishedTrace(
                trace_id=trace_id, service="shop", reason="scored", completion="root", revision=1, details={},
                verdicts=[], closed_ns=1, chunks=0, entries=[waits],
            )
        )  # fmt: skip
    seen: list[int] = []

    def written(_: float) -> None:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            seen.append(connection.execute("SELECT count(*) FROM traces").fetchone()[0])
            connection.execute("COMMIT")

    waits = SimpleNamespace(monotonic=time.monotonic, sleep=written)
    monkeypatch.setattr("sidejudge.integrations.store.erasure.time", waits)
    erase(path, ids[1:], scores=False, now_ns=2)
    store.close()
    assert seen == [300, 200, 100]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT id FROM mail").fetchall() == [(f"{ids[0].hex()}/1",)]


async def test_notes_are_looked_through_twice_however_many_traces_are_forgotten(tmp_path, monkeypatch):
    store, ids = Store(tmp_path / "s.sqlite"), [trace(number) for number in range(500)]
    await store.kept.change({f"{n}": f'{{"trace_id": "{each.hex()}"}}' for n, each in enumerate(ids)})
    await store.kept.change({"else": "{}"})
    asked: list[str] = []

    @contextmanager
    def counting(*where):
        with opened(*where) as connection:
            connection.set_trace_callback(asked.append)
            yield connection

    monkeypatch.setattr("sidejudge.integrations.store.erasure.opened", counting)
    erase(store.path, ids, scores=False, now_ns=2)
    assert asked.count("SELECT name, value FROM kept") == 2
    assert store.kept.all() == {"else": "{}"}
    store.close()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('["{0}"]', id="a list"),
        pytest.param('{{"kind": "alert", "events": null, "report": "{0}"}}', id="no events"),
        pytest.param('{{"kind": "alert", "events": [{{"examples": ["{0}"]}}], "re-ort": null}}', id="a byte changed"),
        pytest.param(
            '{{"kind": "alert", "events": [{{"labels": [["slice", "{0}"]]}}], "report": null}}',
            id="a part of the traffic",
        ),
    ],
)
async def test_what_waits_and_names_a_forgotten_trace_is_deleted_where_it_cannot_go_on_without_it(tmp_path, body):
    store = Store(tmp_path / "s.sqlite")
    await store.notifications.put(
        [Entry(destination="chat", id=f"{n}", body=body.format(trace(n).hex())) for n in (1, 2)], 1
    )
    erase(store.path, [trace(1)], scores=False, now_ns=2)
    assert [entry.id for entry in store.notifications.waiting("chat", 10)] == ["2"]
    store.close()
