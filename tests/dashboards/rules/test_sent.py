"""The rules of mode ``adaptive`` and what a process sends: after a recovery, and where nothing is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.dashboards.rules.test_figure import SITE, WHO, A, B, promtool, series

LIMITED = {**WHO, "metric": "latency_p95"}


def course(*parts: tuple[object, int]) -> str:
    """Values minute by minute: each for so many; None is no series, as an exporter leaves it out."""
    found = [str(each) if each is not None else "stale" for each, count in parts for _ in range(count)]
    return " ".join(found)


def reported(alert: str, pod: dict[str, str], *parts: tuple[object, int], metric: str = "") -> dict[str, str]:
    labels = {"alert": alert, "slice": "", "value": "", "metric": metric}
    return series("sidejudge_alert_reported", course(*parts), **SITE, **pod, **WHO, **labels)


def pass_rate(*statuses: tuple[str, int]) -> list[dict[str, str]]:
    """What a process exports of its pass rate and its status."""
    return [
        series("sidejudge_pass_ratio", "0.6x120", **SITE, **A, **WHO),
        *(
            series("sidejudge_status", course(*((int(each == status), n) for each, n in statuses)), **SITE, **A, **WHO,
                   status=status)
            for status in ("healthy", "warning", "critical", "insufficient_data")
        ),
    ]  # fmt: skip


def latency(*statuses: tuple[str, int]) -> list[dict[str, str]]:
    """The same of a limited metric."""
    return [
        series("sidejudge_limited_metric", "7x120", **SITE, **A, **LIMITED),
        *(
            series("sidejudge_limited_metric_status", course(*((int(each == status), n) for each, n in statuses)),
                   **SITE, **A, **LIMITED, status=status)
            for status in ("healthy", "warning", "critical", "insufficient_data")
        ),
    ]  # fmt: skip


def fires(alert: str, folder: Path, given: Sequence[dict[str, str]], minutes: range = range(0, 72, 2)) -> set[int]:
    asked = [{"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": []} for minute in minutes]
    stated = promtool(folder, list(given), asked)
    assert "SUCCESS" in stated or "got:" in stated, stated
    return {int(hours or 0) * 60 + int(of or 0) for hours, of in re.findall(r"time: (?:(\d+)h)?(?:(\d+)m)?", stated)}


KINDS = [("pass_rate", pass_rate, ""), ("metric", latency, "latency_p95")]


@pytest.mark.parametrize(("kind", "exported", "metric"), KINDS)
@pytest.mark.parametrize("level", ["warning", "critical"])
def test_what_no_process_sends_is_no_alert_until_one_does(kind, exported, metric, level, tmp_path: Path) -> None:
    alert, given = f"Sidejudge{kind.title().replace('_', '')}{level.title()}", exported((level, 100))
    assert min(fires(alert, tmp_path, given)) == 0, "a process of an older version does not say what it sends"
    held_back = reported(f"{kind}_{level}", A, (0, 100), metric=metric)
    assert fires(alert, tmp_path, [*given, held_back]) == set()
    of_another = reported("another", A, (0, 100), metric=metric)
    assert min(fires(alert, tmp_path, [*given, of_another])) == 0
    sent = reported(f"{kind}_{level}", B, ("_", 40), (1, 60), metric=metric)
    assert min(fires(alert, tmp_path, [*given, held_back, sent])) == 40, "one of several is enough"


@pytest.mark.parametrize("back", [0, 2])
@pytest.mark.parametrize("away", [0, 1, 4])
def test_a_warning_that_a_process_holds_back_does_not_fire_while_it_is_away(away, back, tmp_path: Path) -> None:
    """It is away for so many minutes, and exports whether it sends the alert so many later than the status."""
    shown = [(1, 20), (None, away), (1, 80)]
    given = [
        series("sidejudge_pass_ratio", course(*((each and 0.6, count) for each, count in shown)), **SITE, **A, **WHO),
        series("sidejudge_status", course(*shown), **SITE, **A, **WHO, status="warning"),
        reported("pass_rate_warning", A, (0, 20), (None, min(4, away + back)), (0, 80)),
    ]
    assert fires("SidejudgePassRateWarning", tmp_path, given, range(45)) == set()


@pytest.mark.parametrize(("kind", "exported", "metric"), KINDS)
@pytest.mark.parametrize(("level", "unclear", "kept"), [("critical", "warning", 15), ("warning", "healthy", 5)])
def test_what_a_process_neither_ends_nor_sends_again_goes_on(
    kind, exported, metric, level, unclear, kept, tmp_path: Path
) -> None:
    alert = f"Sidejudge{kind.title().replace('_', '')}{level.title()}"
    given = exported((level, 20), (unclear, 80))
    sent = reported(f"{kind}_{level}", A, (1, 50), (None, 50), metric=metric)
    ended = max(fires(alert, tmp_path, given))
    assert ended in range(18 + kept, 21 + kept)
    assert max(fires(alert, tmp_path, [*given, sent])) in range(48 + kept, 51 + kept)


@pytest.mark.parametrize(
    ("alert", "id_", "metric"),
    [
        ("SidejudgeBlockerRate", "blocker_rate", "leak"),
        ("SidejudgeWorkflowViolationRate", "workflow_violation_rate", ""),
    ],
)
def test_a_limit_on_a_share_is_passed_where_a_process_sends_it(alert, id_, metric, tmp_path: Path) -> None:
    held_back = reported(id_, A, (0, 100), metric=metric)
    assert fires(alert, tmp_path, [held_back]) == set()
    sent = reported(id_, B, ("_", 20), (1, 21), (None, 60), metric=metric)
    assert fires(alert, tmp_path, [held_back, sent]) == {*range(20, 46, 2)}
