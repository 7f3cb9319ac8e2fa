"""Giving way: judging waits while a request goes on, and never for longer than it has worked."""

from __future__ import annotations

import threading

from sidejudge.integrations.otlp.server.traffic import ActiveRequests
from sidejudge.monitor.runtime.tuning import YieldToRequests


class Clock:
    """Seconds that pass when somebody works or waits; ``left_s`` is how long requests will be on their way."""

    def __init__(self, left_s=0.0):
        self.now, self.waited, self.left_s = 100.0, 0.0, left_s

    def __call__(self):
        return self.now

    def work(self, seconds):
        self.now += seconds

    def wait(self, seconds):
        assert seconds >= 0
        self.now += seconds
        self.waited += seconds


def test_while_nothing_goes_on_nothing_is_waited_for():
    clock = Clock()
    give_way = YieldToRequests(clock, clock)
    for _ in range(10):
        clock.work(1)
        give_way()
    assert clock.waited == 0


def test_a_request_is_waited_for_as_long_as_it_goes_on():
    clock = Clock()
    give_way = YieldToRequests(clock, clock)
    clock.work(1)
    clock.left_s = 0.003
    give_way()
    assert clock.waited == 0.003


def test_traffic_that_never_ceases_has_half_of_the_time():
    clock = Clock(left_s=5.0)
    give_way = YieldToRequests(clock, clock)
    begin = clock.now
    for _ in range(1_000):
        clock.work(0.001)
        give_way()
    worked = clock.now - begin - clock.waited
    assert 0.95 < worked < 1.05
    assert worked - 0.001 < clock.waited <= worked + 1e-9


def test_a_long_rest_is_not_made_up_for():
    clock = Clock()
    give_way = YieldToRequests(clock, clock)
    clock.work(3_600)
    clock.left_s = 5.0
    give_way()
    assert 0 < clock.waited <= 0.02


def test_a_request_is_passing_until_it_is_answered_or_waits_for_upstream():
    clock = Clock()
    passing = ActiveRequests(clock)
    assert passing.left_s == 0
    passing.begin()
    assert 0 < passing.left_s < 0.1
    clock.work(1)  # upstream thinks
    assert passing.left_s == 0
    passing.go_on()
    passing.begin()
    passing.end()
    assert passing.left_s > 0, "one of two is still on its way"
    passing.end()
    assert passing.left_s == 0


def test_a_thread_that_waits_goes_on_when_the_last_request_is_answered():
    passing = ActiveRequests()
    passing.begin()
    passing.begin()
    waiting, through = threading.Event(), threading.Event()

    def judge():
        waiting.set()
        passing.wait(3_600)
        through.set()

    thread = threading.Thread(target=judge, daemon=True)
    thread.start()
    assert waiting.wait(30)
    passing.end()
    assert not through.is_set()
    passing.end()
    assert through.wait(30)
    thread.join(30)
