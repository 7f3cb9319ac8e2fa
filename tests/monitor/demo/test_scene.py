"""Scene: sample traffic played against a monitor, told on the terminal."""

from __future__ import annotations

import asyncio
import sys

import pytest
import yaml

from sidejudge.monitor.demo.scene import ACTS, CONFIG, TRACES_PER_S, Scene

DEMO = yaml.safe_load(CONFIG.read_text())


async def test_a_scene_sends_traffic_and_tells_where_to_look_and_what_was_found(started, capsys):
    app = await started(**DEMO)
    await Scene(2.5).play(app.monitor, {"otlp": app.otlp, "api": app.api})
    reported = capsys.readouterr().out
    for line in (f"{app.otlp}/v1/traces", f"{app.api}/", f"{app.api}/metrics", f"{app.api}/docs", ACTS[0][2]):
        assert line in reported
    assert "pass rate" in reported, "the head of the table"
    assert "research-assistant" in reported or "call-" in reported
    assert "seen" in reported
    assert "insufficient_data" in reported
    outcomes = await app.settled(1)
    assert 0 < outcomes["seen"] <= 2.5 * TRACES_PER_S + 1
    assert outcomes["ended"]["scored"] == outcomes["seen"]


async def test_a_change_of_status_and_a_failure_are_told_with_their_reason(started, capsys):
    app = await started(
        **{
            **DEMO,
            "alerts": {
                "mode": "bound",  # a few seconds are too few for the default
                "window": "40s",
                "min_samples": 1,
                "min_failures": 1,
                "look": "500ms",
                "hysteresis": {"needed": 1, "looks": 1},
            },
        }
    )
    scene = Scene(8, [(60.0, 1.0, "everything goes wrong")])
    await scene.play(app.monitor, {"otlp": app.otlp, "api": app.api})
    reported = capsys.readouterr().out
    assert "▶ everything goes wrong" in reported
    assert "insufficient_data → " in reported
    assert "→ critical" in reported
    assert "✗ call-" in reported


@pytest.mark.parametrize(("on_path", "called"), [(True, "sidejudge"), (False, ".venv/bin/sidejudge")])
async def test_what_to_call_next_can_be_called_where_it_stands(started, capsys, monkeypatch, tmp_path, on_path, called):
    if on_path:
        (tmp_path / "sidejudge").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [".venv/bin/sidejudge", "demo"])
    app = await started()
    await Scene(0.2, [(60.0, 0.0, "as usual")]).play(app.monitor, {"otlp": app.otlp, "api": app.api})
    assert f"\n  {called} serve  #" in capsys.readouterr().out


async def test_a_scene_that_is_cancelled_ends_at_once(started, capsys):
    app = await started(**DEMO)
    playing = asyncio.create_task(Scene(None).play(app.monitor, {"otlp": app.otlp, "api": app.api}))
    await asyncio.sleep(0.3)
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing


async def test_a_monitor_that_does_not_take_traffic_ends_the_scene_with_the_cause(started, capsys):
    app = await started(**DEMO)
    with pytest.raises(ConnectionRefusedError):
        await Scene(30).play(app.monitor, {"otlp": "http://127.0.0.1:1", "api": app.api})
