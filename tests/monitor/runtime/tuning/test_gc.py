"""Garbage is looked for when that is asked for, and otherwise only where there is much."""

from __future__ import annotations

import json
import subprocess
import sys

LOOKED = """
import gc, json, weakref
from sidejudge.monitor.runtime.tuning import collect_if_due, collect_rarely

class Knot:
    def __init__(self):
        self.itself = self

class Thing:
    pass

def gone(things):
    # whether a knot is found while so many things are made, and once it is looked for
    knot = weakref.ref(Knot())
    kept = [Thing() for _ in range(things)]
    by_itself = knot() is None
    collect_if_due()
    return by_itself, knot() is None

collect_rarely()
print(json.dumps([gone(100), gone(15_000), gone(25_000), gc.get_freeze_count() > 1_000]))
"""


def test_a_batch_is_not_interrupted_and_what_it_leaves_is_found_when_it_is_done():
    run = subprocess.run([sys.executable, "-c", LOOKED], capture_output=True, check=True)
    few, batch, flood, frozen = json.loads(run.stdout)
    assert few == [False, False], "so little is not worth a look"
    assert batch == [False, True]
    assert flood == [True, True], "memory is bounded though nobody asks"
    assert frozen
