"""Functions as somebody's own module has them."""

import asyncio
import os
import subprocess
import sys
import time

from sidejudge.scoring.questions.kinds import SameEntity
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import NotApplicable, Scored


def truth(case):
    return "refund" in case.model_output


def number(case, *, factor=1):
    return len(case.model_output) * factor


class OfALibrary:
    """A scalar as numpy and torch have it."""

    def item(self):
        return 0.25


def library(case):
    return OfALibrary()


async def waits(case):
    await asyncio.sleep(0)
    return len(case.model_output)


def category(case):
    return "short" if len(case.model_output) < 10 else "long"


def whole(case):
    return Scored(value=0.5, reason="half", details={"of": case.case_id})


def nothing(case):
    return None


def strange(case):
    return {"a": 1}


class Own:
    """What only this module knows."""


def own(case):
    return Own()


def no_value(case):
    return lambda: 1


def no_number(case):
    return float("nan")


def applicable(case):
    return NotApplicable("no refund")


def raises(case):
    raise RuntimeError("no such order")


def hangs(case):
    time.sleep(60)


def spins(case):
    while True:
        pass


def dies(case):
    os._exit(3)


def prints(case):
    print("on standard output")  # noqa: T201  # what is tested
    return True


def asks(case):
    replies = yield (SameEntity(("a",), ("b",)),)
    return isinstance(replies[0], Answer)


def asks_one(case):
    reply = yield SameEntity(("a",), ("b",))
    return Scored(value=1.0, reason=reply.reason)


not_a_function = 3


def starts(case):
    return subprocess.Popen(["sleep", "60"]).pid  # what is tested


def leaves(case):
    sys.exit(3)


def asks_on(case):
    while True:
        yield SameEntity(("a",), ("b",))


def yields_text(case):
    yield "is it right?"


def yields_texts(case):
    yield ["is it right?"]


def yields_number(case):
    yield 5
