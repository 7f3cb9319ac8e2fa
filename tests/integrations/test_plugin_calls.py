"""Calls of plugins: what they raise, and what they never return from, costs them alone."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.integrations.plugin_calls import PluginObject
from tests.waiting import until


class Sink:
    def __init__(self, act):
        self.deliver = act


def plugin(act, **more):
    return PluginObject("acme", Sink, {"act": act}, "deliver", **more)


async def coroutine(given):
    await asyncio.sleep(0)
    return given


@pytest.mark.parametrize("act", [lambda given: given, coroutine])
async def test_what_a_call_returns_comes_back(act):
    assert await plugin(act).call(7) == 7


def refused(_):
    raise RefusedError("not this one")


def later(_):
    raise DestinationUnreachableError("full", retry_after_s=7.0)


async def test_a_refusal_and_a_pause_are_passed_on():
    with pytest.raises(RefusedError, match="not this one"):
        await plugin(refused).call(1)
    with pytest.raises(DestinationUnreachableError) as caught:
        await plugin(later).call(1)
    assert caught.value.retry_after_s == 7.0


@pytest.mark.parametrize(
    ("act", "stated"),
    [
        (lambda _: {}["key"], "acme: KeyError: 'key'"),
        (lambda _: sys.exit(3), "acme: SystemExit: 3"),
        (None, "acme: TypeError"),
    ],
)
async def test_anything_else_that_is_raised_is_tried_again(act, stated):
    with pytest.raises(DestinationUnreachableError, match=stated):
        await plugin(act).call(1)


async def test_an_object_that_cannot_be_made_is_made_at_the_next_call():
    tries = []

    def make():
        tries.append(1)
        if len(tries) == 1:
            raise OSError("no such host")
        return Sink(lambda given: given)

    made = PluginObject("acme", make, {}, "deliver")
    with pytest.raises(DestinationUnreachableError, match="no such host"):
        await made.call(1)
    assert [await made.call(2), await made.call(3)] == [2, 3]
    assert len(tries) == 2


async def test_a_call_that_hangs_is_given_up_and_no_other_begins_until_it_has_ended():
    go_on, calls = threading.Event(), []

    def hang(given):
        calls.append(given)
        go_on.wait(20)

    made = plugin(hang, timeout_s=0.05)
    with pytest.raises(DestinationUnreachableError, match="took longer than"):
        await made.call(1)
    with pytest.raises(DestinationUnreachableError, match="has not returned"):
        await made.call(2)
    assert calls == [1]
    go_on.set()
    await until(lambda: all(each.name != "plugin acme" for each in threading.enumerate()))
    await made.call(3)
    assert calls == [1, 3]
