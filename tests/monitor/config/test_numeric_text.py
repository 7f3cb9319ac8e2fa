"""A number may be a text of its digits alone, as ``helm --set`` gives one; no other text is taken for a number."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from sidejudge.monitor.config import Config


def test_digits_are_a_number_where_a_number_is_wanted():
    config = Config.model_validate({
        "sampling": {"rate": "0.05"}, "alerts": {"min_samples": "40", "thresholds": {"warning": "9e-1"}},
        "evaluators": {"judge": {"model": "openai/1.5", "budget_usd_per_hour": "2.5"}},
    })  # fmt: skip
    assert (config.sampling.rate, config.alerts.min_samples, config.alerts.thresholds.warning) == (0.05, 40, 0.9)
    assert config.evaluators.judge is not None
    assert config.evaluators.judge.budget_usd_per_hour == 2.5


@pytest.mark.parametrize("text", ["", "much", "0,05", "5 %", "nan", "inf", "0x10", "1_000", "٣", "1" * 30])
def test_any_other_text_is_none(text):
    with pytest.raises(ValidationError):
        Config.model_validate({"sampling": {"rate": text}})


def test_a_text_of_digits_stays_a_text_where_a_text_is_wanted():
    config = Config.model_validate({"alerts": {"instance": "12"}})
    assert config.alerts.instance == "12"


def test_limits_hold_for_texts_as_for_numbers():
    with pytest.raises(ValidationError, match=r"must be in \(0, 1\]"):
        Config.model_validate({"sampling": {"rate": "1.5"}})
    with pytest.raises(ValidationError):
        Config.model_validate({"alerts": {"min_samples": "40.5"}})
