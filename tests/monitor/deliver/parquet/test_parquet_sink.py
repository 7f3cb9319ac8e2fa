"""``sinks.parquet``: every result once, whatever is killed; read by others; forgotten where a person asks for it."""

from __future__ import annotations

import json
import signal
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from sidejudge.integrations.history.reading import history_records
from sidejudge.monitor.deliver.sink import ErasureRequest
from tests.forked import sidejudge
from tests.needs import DUCKDB, PYARROW
from tests.otlp_requests import S, request, span, trace

CANARY = "canary-4711"


def body(number: int, user: str = "ann", tool: str = "search") -> bytes:
    attributes = {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "user.id": user, "session.id": f"s-{user}",
        "gen_ai.input.messages": f'[{{"role":"user","parts":[{{"type":"text","content":"{CANARY}"}}]}}]',
        "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"yes"}]}]',
    }  # fmt: skip
    call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
    root = S(trace_id=trace(number), span_id=span(number), attributes=attributes, name="agent")
    child = S(trace_id=trace(number), span_id=span(1000 + number), parent_id=span(number), attributes=call)
    return request([root, child])


@PYARROW.mark
def test_results_are_kept_through_kills_read_by_others_and_forgotten(serving, tmp_path: Path) -> None:
    path = tmp_path / "history"
    monitor = serving(assembly={"grace": "50ms"}, sinks={"parquet": {"path": str(path), "every": "100ms"}})
    sent = 40
    for number in range(1, sent + 1):
        assert monitor.post(body(number, "ann" if number % 2 else "bob")).status_code == 200
    monitor.until(lambda: any(path.rglob("outcomes/**/*.parquet")), "nothing was written")
    monitor.stop(signal.SIGKILL)
    monitor.start()
    monitor.until(lambda: sum(1 for _ in history_records(str(path), "outcomes")) >= sent, "not all was written")
    monitor.stop()

    wanted = sorted(trace(number).hex() for number in range(1, sent + 1))
    outcomes = list(history_records(str(path), "outcomes"))
    verdicts = list(history_records(str(path), "verdicts"))
    assert sorted(each["trace_id"] for each in outcomes) == wanted
    assert sorted(each["trace_id"] for each in verdicts) == wanted
    rows = sum(
        import_module("pyarrow.parquet").read_table(file).num_rows for file in path.rglob("outcomes/**/*.parquet")
    )
    assert rows == sent, "a row stands twice in the files"

    config = monitor.folder / "history.yaml"
    config.write_text(yaml.safe_dump({
        "store": {"path": str(monitor.folder / "state.sqlite")},
        "sinks": {"parquet": {"path": str(path), "every": "100ms"}},
    }))  # fmt: skip
    done = sidejudge("simulate", config, "--verdicts", path, "--json")
    assert done.returncode == 0, done.stderr
    replayed = sidejudge("simulate", config, "--json")
    counted = [[each["verdicts"] for each in json.loads(text)["courses"]] for text in (done.stdout, replayed.stdout)]
    assert counted[0] == counted[1]
    assert sum(counted[0]) > 0
    done = sidejudge("learn", path)
    assert done.returncode == 0, done.stderr
    assert "search" in done.stdout

    done = sidejudge("forget", "--user", "ann", "--yes", "--config", config)
    assert done.returncode == 0, done.stderr
    assert "are erased as the monitor delivers" in done.stdout
    monitor.start()
    bobs = [trace(number).hex() for number in range(2, sent + 1, 2)]
    monitor.until(
        lambda: sorted(each["trace_id"] for each in history_records(str(path), "outcomes")) == bobs, "not forgotten"
    )
    assert sorted(each["trace_id"] for each in history_records(str(path), "verdicts")) == bobs


@PYARROW.mark
def test_what_waits_behind_requests_to_erase_needs_no_further_traffic(serving, tmp_path: Path) -> None:
    path = tmp_path / "history"
    monitor = serving(assembly={"grace": "50ms"}, sinks={"parquet": {"path": str(path), "every": "300ms"}})

    def kept() -> list[str]:
        return sorted(each["trace_id"] for each in history_records(str(path), "outcomes"))

    for number in (1, 2, 3):
        assert monitor.post(body(number, f"user {number}")).status_code == 200
    monitor.until(lambda: kept() == [trace(number).hex() for number in (1, 2, 3)], "nothing was written")
    for number in (1, 2):
        done = sidejudge("forget", "--user", f"user {number}", "--yes", "--config", monitor.config)
        assert done.returncode == 0, done.stderr
    assert monitor.post(body(4)).status_code == 200
    monitor.until(lambda: kept() == [trace(number).hex() for number in (3, 4)], "something waits", 20)


@PYARROW.mark
@DUCKDB.mark
def test_duckdb_reads_a_history_in_one_line(tmp_path: Path) -> None:
    module = import_module("sidejudge.integrations.history.history")
    place = import_module("sidejudge.integrations.history.place").Place(str(tmp_path))
    module.History(place, "w").write([
        module.Row(
            kind="verdicts", day=f"2026-11-0{n}", seq=n,
            record={"trace_id": f"t{n}", "rubric": "qa", "revision": 1, "passed": n > 1, "sampling_probability": 0.5,
                    "scores": [{"metric": "m", "status": "scored", "value": n, "reason": "r"}]},
        )
        for n in (1, 2, 3)
    ])  # fmt: skip
    read = f"FROM read_parquet('{tmp_path}/verdicts/*/*.parquet') SELECT "
    duckdb = import_module("duckdb")
    assert duckdb.sql(read + "count(*), sum(passed::INT / sampling_probability), max(day)::VARCHAR").fetchall() == [
        (3, 4.0, "2026-11-03")
    ]
    assert duckdb.sql(read + "sum(scores[1].value)").fetchall() == [(6.0,)]
    page = (Path(__file__).parents[4] / "docs/how-to/history.md").read_text()
    shown = page.split('duckdb -c "')[1].split('"')[0].replace("history/", f"{tmp_path}/")
    rates = {str(day): rate for day, _service, rate in duckdb.sql(shown).fetchall()}
    assert rates == {"2026-11-01": 0.0, "2026-11-02": 1.0, "2026-11-03": 1.0}


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (ErasureRequest(traces=("t",)), True),
        (ErasureRequest(traces=("x",)), False),
        (ErasureRequest(users=("u",)), True),
        (ErasureRequest(sessions=("s",)), True),
        (ErasureRequest(sessions=("s", "\udcff")), True),  # a byte of a command line that is not UTF-8
        (ErasureRequest(before_ns=11), True),
        (ErasureRequest(before_ns=10), False),
        (ErasureRequest(), False),
    ],
)
def test_an_erasure_request_names_traces_by_id_user_session_and_age(asked: ErasureRequest, named: bool) -> None:  # noqa: FBT001  # a row of the table
    record = {"trace_id": "t", "user": "u", "session_id": "s", "ended_at": 10}
    assert ErasureRequest.from_json(asked.to_json()).names(record) is named


@pytest.mark.parametrize("path", ["ftp://x/y", ""])
def test_a_path_that_cannot_be_is_refused(tmp_path: Path, path: str) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(yaml.safe_dump({"sinks": {"parquet": {"path": path}}}))
    done = sidejudge("check", config)
    assert done.returncode == 2
    assert "sinks.parquet.path" in done.stderr
