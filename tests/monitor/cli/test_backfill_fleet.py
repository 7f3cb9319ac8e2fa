"""Two calls of ``sidejudge backfill`` over the same time share the work, and one that is killed is taken over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sidejudge.integrations.langfuse.scores import score_id
from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.monitor.demo.traffic import SampleTraffic
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.forked import Forked
from tests.postgres_server import PostgresServer
from tests.waiting import until

START_NS = 1_795_000_000 * 10**9
TIMES = ("--from", "2026-11-01", "--to", "2026-12-01T00:00Z", "--yes")
TRACES = 24


@pytest.fixture
def fake() -> Iterator[FakeLangfuse]:
    with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as server:
        traffic = SampleTraffic(1)
        for number in range(TRACES):
            spans = decode_spans(traffic.next(START_NS + number * 10**9, wrong=0.3).body)
            observations_of(server).put(*rows_of(spans))
        yield server


class Call:
    """The command in a process of its own. ``lease`` is how long its shards stay its own where it is gone."""

    def __init__(self, folder: Path, name: str, fake: FakeLangfuse, database: str, *, lease: str = "1m") -> None:
        keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY, "scores": "all"}
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump({
            "sampling": {"rate": 1.0}, "sinks": {"langfuse": {**keys, "requests_per_minute": 6000}},
            "fleet": {"database": database, "every": "100ms", "timeout": "1s", "lease": lease},
        }))  # fmt: skip
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        arguments = ["backfill", path, *TIMES, "--state", folder / name]
        self.process = Forked(*arguments, stdout=self._out, stderr=self._err)

    def end(self) -> tuple[int, str, str]:
        code = self.process.wait(60)
        return code, self._out.read_text(), self._err.read_text()


def elsewhere(out: str) -> int:
    """How many traces other processes judged."""
    found = re.search(r"by other processes: (\d+)", out)
    return int(found[1]) if found else 0


def stands_once(fake: FakeLangfuse) -> int:
    """How many traces have scores; each score stands under one id."""
    rows = fake.scores.stored()
    assert len({(row["traceId"], row["name"]) for row in rows}) == len(rows)
    assert all(row["id"] == score_id(row["traceId"], row["name"]) for row in rows)
    return len({row["traceId"] for row in rows})


async def test_two_calls_share_the_work_and_take_over_what_a_killed_one_left(
    tmp_path: Path, fake: FakeLangfuse, postgres: PostgresServer
) -> None:
    database = postgres.url(postgres.new_database())
    killed = Call(tmp_path, "killed", fake, database, lease="2200ms")
    await until(lambda: bool(fake.scores.stored()), seconds=30)
    killed.process.kill()
    killed.process.wait(10)
    calls = [Call(tmp_path, name, fake, database) for name in "ab"]
    ends = [call.end() for call in calls]
    assert [code for code, _, _ in ends] == [0, 0], ends
    shares = [elsewhere(out) for _, out, _ in ends]
    assert sum(shares) >= TRACES, "each trace by one of them, or by the first"
    assert not any("goes on alone" in err for _, _, err in ends)
    assert stands_once(fake) == TRACES
