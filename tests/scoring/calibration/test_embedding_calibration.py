"""Embedding calibration: the threshold stands between what is the same and what is not, and its promise is honest."""

from __future__ import annotations

import random

from sidejudge.scoring.calibration.embedding_calibration import MeaningPair, Separation, fit
from sidejudge.scoring.result.result import Unavailable


def entity(same):
    return MeaningPair(kind="entity", one="a", other="b", same=same)


def test_the_threshold_is_the_middle_of_the_gap_and_the_seeds_is_shown_beside_it():
    found = fit("entity", [(entity(True), 0.62 + k / 1000) for k in range(12)]
                + [(entity(False), 0.30 + k / 1000) for k in range(12)])  # fmt: skip
    assert isinstance(found.fitted, Separation)
    assert found.fitted.threshold == 0.466
    assert found.fitted.balanced == found.expected == 1.0
    assert isinstance(found.seed, Separation)
    assert (found.seed.same, found.seed.different, found.seed.threshold) == (0.0, 1.0, 0.8)


def test_of_few_pairs_nothing_is_fitted():
    found = fit("entity", [(entity(True), 0.9)] * 9 + [(entity(False), 0.1)] * 20)
    assert found.fitted == Unavailable("9 same and 20 different pairs; 10 of each are needed")
    assert found.expected is None


def test_noise_fits_well_and_promises_nothing():
    chance = random.Random(5)
    found = fit("entity", [(entity(number % 2 == 0), chance.random()) for number in range(40)])
    assert isinstance(found.fitted, Separation)
    assert found.fitted.balanced > 0.5
    assert found.expected is not None
    assert found.expected < 0.6


def test_what_figures_and_denials_decide_does_not_move_a_threshold():
    other_figure = MeaningPair(kind="statement", one="A refund of $49", other="A refund of $94", same=False)
    denial = MeaningPair(kind="statement", one="It was refunded", other="It was not refunded", same=False)
    plain = MeaningPair(kind="statement", one="The agent apologised", other="The agent said sorry", same=True)
    found = fit("statement", [(other_figure, 0.97), (denial, 0.95), (plain, 0.7)])
    assert (found.n_same, found.n_different, found.excluded) == (1, 0, 2)
