"""A real monitor whose machine's clock is set back: what it does again and again goes on in its usual time."""

from __future__ import annotations

from tests.faults.campaign.campaign import disk_faults
from tests.needs import CC
from tests.otlp_requests import S, request, span, trace
from tests.running import Running

HOUR_S = 3600


@CC.mark
def test_rounds_go_on_after_the_clock_was_set_back(tmp_path):
    machine = disk_faults(tmp_path)
    monitor = Running(tmp_path, {"reload": {"watch": True, "every": "1s"}}, environ=machine.environ).start()
    try:
        machine.shift(-HOUR_S)
        monitor.configure(sampling={"rate": 0.25})
        reloaded = "the configuration was reloaded"
        monitor.until(lambda: reloaded in monitor.log(), "the changed file is not read", seconds=30)
        monitor.configure(sampling={"rate": 1.0})
        monitor.until(lambda: monitor.log().count(reloaded) == 2, "it is read once only", seconds=30)
        monitor.post(request([S(trace_id=trace(1), span_id=span(1), service="shop")]))
        monitor.settled(1)
    finally:
        monitor.close()
