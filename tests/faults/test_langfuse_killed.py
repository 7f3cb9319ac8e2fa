"""A day in miniature: traffic, a Langfuse that goes wrong in every way that passes by itself, a monitor that is killed.

What only a person can mend (keys, rights) and what a worker drops in silence is waited for by minutes and hours; these
faults are among those of `test_langfuse_faults.py`, whose clock is the test's.
"""

from __future__ import annotations

import random
import signal
import time

import httpx
import pytest

from sidejudge.integrations.langfuse.declared_scores import COUNTED, NOT_COUNTED
from sidejudge.monitor.demo.traffic import SampleTraffic
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.score import composite_name, pass_name, score_name, state_name
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode

ROUNDS, TRACES, FAULTS = 6, 10, 5
"""Rounds, traces of each, and faults that a run must exceed; it goes on for up to three times as many rounds."""
ROUTES = [{"match": {"metadata.task": "qa"}, "rubrics": ["qa"]}, {"rubrics": ["answer", "entity"]}]


def named(rubric: str, metric: str) -> str:
    return next(score_name(rubric, c.metric) for c in RUBRICS[rubric].criteria if c.metric.id == metric)


def expected(monitor) -> dict[tuple[str, str], object]:
    """What the verdicts say, by trace and score name."""
    found: dict[tuple[str, str], object] = {}
    for verdict in monitor.verdicts():
        of, rubric = verdict["trace_id"], verdict["rubric"]
        stated = {
            state_name(rubric): NOT_COUNTED if verdict["state"] == "incomplete" else COUNTED,
            composite_name(rubric): verdict["composite"],
        }
        stated |= {pass_name(rubric): verdict["passed"]}
        stated |= {named(rubric, score["metric"]): score["value"] for score in verdict["scores"]}
        found |= {(of, name): value for name, value in stated.items() if value is not None}
    return found


def stored(fake: FakeLangfuse) -> dict[tuple[str, str], object]:
    rows = fake.scores.stored()
    assert len({row["id"] for row in rows}) == len(rows), "a score is stored twice"
    return {(row["traceId"], row["name"]): row["value"] for row in rows}


def post(monitor, body: bytes) -> None:
    """As a client does: again, until it is acknowledged."""
    monitor.until(lambda: acknowledged(monitor, body), "a trace was not taken")


def acknowledged(monitor, body: bytes) -> bool:
    try:
        return monitor.post(body).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.parametrize(("mode", "share"), [(Mode.DUAL, 0.15), (Mode.NEW, 0.4)], ids=["4.16.0", "4.62.0"])
def test_through_faults_and_kills_at_random_moments_each_score_is_stored_once_with_its_value(serving, mode, share):
    dice, traffic = random.Random(f"day {mode.value}"), SampleTraffic(6)
    with FakeLangfuse(mode) as fake:
        kinds = [
            faults.store_away(), faults.database_away(), faults.proxy_page(), faults.login_page(), faults.resources(),
            faults.resets(), faults.resets(20), faults.lost_answer(fake), faults.hangs(), faults.rate_limited(1, 10**6),
        ]  # fmt: skip
        broken, hurt = [True], [0]

        def sometimes(request):
            if not broken[0] or dice.random() > share:
                return None
            hurt[0] += 1
            return dice.choice(kinds)(request)

        fake.standing_fault = sometimes
        keys = {"public_key": PUBLIC_KEY, "secret_key": SECRET_KEY, "requests_per_minute": 100_000, "scores": "all"}
        monitor = serving(
            sinks={"langfuse": {"base_url": fake.base_url, **keys, "timeout": "500ms"}}, routes=ROUTES,
            assembly={"grace": "100ms", "idle": "1s"},
        )  # fmt: skip
        rounds = 0
        while rounds < ROUNDS or (hurt[0] <= FAULTS and rounds < 3 * ROUNDS):  # the monitor decides how often it asks
            rounds += 1
            for _ in range(TRACES):
                post(monitor, traffic.next(time.time_ns(), wrong=0.3).body)
            time.sleep(dice.uniform(0, 1.5))  # the moment of the kill: between, before and within requests
            monitor.stop(signal.SIGKILL)
            monitor.start()
        monitor.settled(0)
        broken[0] = False
        wanted = expected(monitor)
        assert len({trace for trace, _ in wanted}) == rounds * TRACES
        monitor.until(lambda: monitor.get("/v1/status")["exports"][0]["waiting"] == 0, "some still wait", seconds=120)
        assert stored(fake) == wanted
        assert monitor.get("/v1/status")["exports"][0]["dead"] == 0
        assert hurt[0] > FAULTS
