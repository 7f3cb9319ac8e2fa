"""A monitor in a process of its own tells people: traffic turns bad, is mended, and is killed in between."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sidejudge.monitor.demo.traffic import SampleTraffic
from tests.alertmanager import alertmanager
from tests.fakes.receiver import Act, receiving

QUICK = {
    "mode": "bound", "window": "25s", "min_samples": 10, "look": "500ms",
    "hysteresis": {"needed": 2, "looks": 3, "recovery_margin": 0.0, "hold": "0s"},
    "links": {"trace": "https://t.example/{trace_id}", "runbooks": "https://r.example"},
}  # fmt: skip
ROUTES = [{"match": {"metadata.task": "qa"}, "rubrics": ["qa"]}, {"match": {}, "rubrics": []}]
MANY_PER_S = 20


class Sending:
    """Call-centre traffic from a thread, the share of wrong answers of which can be changed."""

    def __init__(self, monitor) -> None:
        self.wrong = 0.0
        self._monitor, self._over = monitor, threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def _send(self) -> None:
        traffic = SampleTraffic()
        while not self._over.wait(1 / MANY_PER_S):
            try:
                sent = traffic.next(time.time_ns(), self.wrong)
                if sent.service == "call-quality":
                    self._monitor.post(sent.body)
            except Exception:  # noqa: BLE001  # the monitor is killed on purpose
                continue

    @contextmanager
    def on(self) -> Iterator[Sending]:
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()


def alerts(taken, turn, condition="pass_rate_critical"):
    return [a for got in taken for a in got.json["alerts"] if (a["turn"], a["condition"]) == (turn, condition)]


def in_slack(fake, words):
    return [got.json["text"] for got in fake.taken if words in got.json["text"]]


@pytest.mark.timeout(240)
def test_traffic_that_turns_bad_is_one_page_everywhere_and_its_recovery_one_message(serving, tmp_path):
    with (
        receiving() as slack, receiving() as hook, receiving() as behind,
        alertmanager(tmp_path / "am", f"{behind.url}/") as manager,
    ):  # fmt: skip
        misbehaving = [Act(status=500), Act(reset=True), Act(status=429, headers={"retry-after": "1"}), Act()]
        hook.act = lambda number: misbehaving[min(number, 3)]
        monitor = serving(
            routes=ROUTES,
            alerts={
                **QUICK,
                "notify": [
                    {"slack": {"url": f"{slack.url}/slacksecret", "severity": "critical"}},
                    {"webhook": {"url": f"{hook.url}/hooksecret", "secret": "keysecret"}},
                    {"alertmanager": {"url": manager.url}},
                ],
            },
        )
        with Sending(monitor).on() as traffic:
            monitor.settled(20)
            assert slack.got == [], "nobody is told that all is well"
            traffic.wrong = 1.0
            monitor.until(lambda: len(slack.taken) >= 1 and alerts(hook.taken, "firing") != [], "no page", 60)
            critical = {"alertname": "SidejudgePassRateCritical", "service": "call-quality"}
            monitor.until(lambda: manager.alerts(**critical) != [], "Alertmanager was not told")
            monitor.until(lambda: all(not d["waiting"] for d in monitor.get("/v1/status")["exports"]), "waits")
            monitor.stop(signal.SIGKILL)
            monitor.start()
            time.sleep(2)  # looks of the new process, which must not page again
            traffic.wrong = 0.0
            monitor.until(lambda: alerts(hook.taken, "resolved") != [], "no recovery was told", 60)
            monitor.until(lambda: in_slack(slack, "Resolved: ") != [], "no recovery was told in Slack")
            monitor.until(lambda: manager.alerts(**critical) == [], "Alertmanager was not told of the recovery")
            monitor.until(lambda: monitor.get("/v1/status")["status"] == "healthy", "not healthy again", 60)

        (page,), (end,) = alerts(hook.taken, "firing"), alerts(hook.taken, "resolved")
        assert page["fingerprint"] == end["fingerprint"]
        told, over = in_slack(slack, "")
        failed = round((1 - page["value"]) * page["n"])
        assert told.startswith(f"🔴 Critical: call-quality, demo: {failed} of {page['n']} fail qa within ")
        assert over == "✅ Resolved: Too few traces pass – call-quality, demo, qa"
        (critical_page,) = [got.json for got in hook.taken if page in got.json["alerts"]]
        assert f"What broke: {page['failure']['reason']} (" in critical_page["text"]
        assert page["failure"]["count"] <= page["failure"]["of"]
        assert page["value"] < 0.7
        assert page["n"] >= 10
        assert page["lower"] <= page["value"] <= page["upper"] < 0.7
        assert [each["url"] for each in page["examples"]] == [
            f"https://t.example/{each['trace_id']}" for each in page["examples"]
        ]
        assert len(page["examples"]) == 3
        assert all(each["reason"] for each in page["examples"])
        for example in page["examples"]:
            assert monitor.get(f"/v1/traces/{example['trace_id']}")["trace_id"] == example["trace_id"]
        passed_on = [a for got in behind.got for a in got.json["alerts"] if critical.items() <= a["labels"].items()]
        assert [each["status"] for each in passed_on] == ["firing", "resolved"]
        metrics = monitor.http.get(monitor.api + "/metrics").text
        assert 'sidejudge_exports_total{destination="slack"}' in metrics
        assert 'sidejudge_exports_dead{destination="webhook"} 0.0' in metrics
        log = (monitor.folder / "log").read_text()
        for secret in ("slacksecret", "hooksecret", "keysecret"):
            assert secret not in log + metrics + monitor.http.get(monitor.api + "/v1/status").text


@pytest.mark.timeout(120)
def test_a_dead_receiver_is_visible_and_gets_its_page_when_it_is_mended_after_a_kill(serving):
    with receiving() as slack, receiving() as hook:
        slack.act = lambda _: Act(status=404, body=b"no_service")
        hook.act = lambda _: Act(status=503)
        monitor = serving(
            routes=ROUTES,
            alerts={**QUICK, "window": "1h", "notify": [{"slack": {"url": slack.url, "severity": "critical"}},
                    {"webhook": {"url": hook.url, "secret": "k", "severity": "critical"}}]},
        )  # fmt: skip
        with Sending(monitor).on() as traffic:
            traffic.wrong = 1.0
            monitor.until(lambda: slack.got != [] and hook.got != [], "nobody was told", 60)

        def destination(name):
            return next(d for d in monitor.get("/v1/status")["exports"] if d["destination"] == name)

        monitor.until(lambda: destination("slack")["dead"] == 1, "it is not seen to be set aside")
        assert destination("slack")["reason"] == "it answered 404 Not Found: no_service"
        monitor.until(lambda: destination("webhook")["state"] == "retrying", "it is not seen to fail")
        failing = destination("webhook")
        assert (failing["waiting"], failing["dead"]) == (1, 0)
        assert failing["reason"] == "it answered 503 Service Unavailable: ok"
        metrics = monitor.http.get(monitor.api + "/metrics").text
        assert 'sidejudge_exports_dead{destination="slack"} 1.0' in metrics
        assert 'sidejudge_exports_failed_total{destination="slack",reason="not_delivered"} 1.0' in metrics
        assert 'sidejudge_queue_items{queue="webhook"} 1.0' in metrics

        monitor.stop(signal.SIGKILL)
        slack.act = hook.act = lambda _: Act()
        monitor.start()
        monitor.until(lambda: slack.taken != [] and hook.taken != [], "it was lost")
        monitor.until(lambda: destination("slack")["dead"] == destination("webhook")["waiting"] == 0, "it is kept")
        assert in_slack(slack, "")[0].startswith("🔴 Critical: ")
        assert len(slack.taken) == len(hook.taken) == 1
