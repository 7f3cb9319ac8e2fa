"""Two streams: the bets are fair wherever both pass alike, and a part that is worse is found."""

from __future__ import annotations

import itertools
import json
import math
import random

import pytest

from sidejudge.scoring.statistics.evidence import Together
from sidejudge.scoring.statistics.two_streams import TwoStreams, _bet

LIMIT = math.log(1e4)


def block(passed: int, failed: int, weight: float = 1.0) -> list[Together]:
    found = [Together(True, weight, passed, passed), Together(False, weight, failed, failed)]
    return [each for each in found if each.n]


@pytest.mark.parametrize("truth", [0.01, 0.15, 0.5, 0.9])
@pytest.mark.parametrize(("predicted", "bad"), [(0.05, 0.17), (0.3, 0.63), (0.01, 0.1)])
def test_a_bet_on_two_equal_parts_pays_nothing_on_average_whatever_was_predicted(truth, predicted, bad):
    part, rest = 2, 5
    equal = (part * bad + rest * predicted) / (part + rest)
    expected = 0.0
    for failed, lost in itertools.product(range(part + 1), range(rest + 1)):
        chance = (
            math.comb(part, failed) * truth**failed * (1 - truth) ** (part - failed)
            * math.comb(rest, lost) * truth**lost * (1 - truth) ** (rest - lost)
        )  # fmt: skip
        grown = _bet(block(part - failed, failed), {1.0: 1.0}, bad, equal)
        grown += _bet(block(rest - lost, lost), {1.0: 1.0}, predicted, equal)
        expected += chance * math.exp(grown)
    assert expected <= 1 + 1e-12


def followed(
    part: float, rest: float, *, blocks: int, seed: int, weight: float = 1.0, limit: float = LIMIT
) -> TwoStreams:
    chance, streams = random.Random(seed), TwoStreams(0.9)
    for at in range(blocks):
        of_part, of_rest = [sum(chance.random() < ratio for _ in range(n)) for n, ratio in ((2, part), (8, rest))]
        streams.add(block(of_part, 2 - of_part, weight), block(of_rest, 8 - of_rest, weight), limit, at_ns=at)
        if streams.worse:
            break
    return streams


@pytest.mark.parametrize("ratio", [0.99, 0.9, 0.5, 0.05])
def test_what_passes_as_the_rest_does_is_not_worse_whatever_that_is(ratio):
    limit = math.log(1e6)  # a false alarm in a million blocks
    assert not any(followed(ratio, ratio, blocks=600, seed=seed, limit=limit).worse for seed in range(4))


@pytest.mark.parametrize("weight", [1.0, 40.0])
def test_a_part_that_is_worse_is_found_and_dated_and_its_recovery_is_seen(weight):
    streams = followed(0.96, 0.96, blocks=100, seed=1, weight=weight)
    chance = random.Random(2)
    for at in range(100, 200):
        failed = sum(chance.random() < 0.4 for _ in range(2))
        streams.add(block(2 - failed, failed, weight), block(8, 0, weight), LIMIT, at_ns=at)
    assert streams.worse
    assert streams.share >= 1
    assert 90 <= streams.since_ns <= 110
    for at in range(200, 400):
        streams.add(block(2, 0, weight), block(7, 1, weight), LIMIT, at_ns=at)
    assert not streams.worse
    assert streams.since_ns is None


def test_a_part_that_is_better_than_the_rest_or_alone_is_never_worse():
    assert not followed(0.99, 0.6, blocks=400, seed=3).worse
    alone = TwoStreams(0.9)
    for at in range(200):
        alone.add(block(0, 5), [], LIMIT, at_ns=at)
    assert not alone.worse


def test_a_restart_goes_on_where_it_was():
    streams = followed(0.6, 0.95, blocks=10, seed=4)
    again = TwoStreams(0.9)
    again.restore(json.loads(json.dumps(streams.to_json())))
    for each in (streams, again):
        each.add(block(0, 2), block(8, 0), LIMIT, at_ns=11)
    assert again.to_json() == streams.to_json()
