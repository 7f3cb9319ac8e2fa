"""A number may be a text of its digits alone, as ``helm --set`` gives one; no other text is taken for a number."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from sidejudge.monitor.config import Config
from sidejudge.scoring.rubrics import RUBRICS


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


def test_a_limit_of_a_metric_is_a_number_too():
    limit = {"metric": "keyword_f1_mean", "warning_below": "0.7"}
    (found,) = Config.model_validate({"alerts": {"metrics": [limit]}}).alerts.metrics
    assert (str(found.warning_below), found.limits(RUBRICS)[0].warning) == ("0.7", 0.7)
    with pytest.raises(ValidationError, match="must be a duration such as 5s"):
        Config.model_validate({"alerts": {"metrics": [{"metric": "latency_p95", "warning": "5"}]}})


@pytest.mark.parametrize("number", [10**400, -(10**400), float("nan"), float("inf")])
def test_a_number_beyond_all_bounds_is_refused_with_its_place(number):
    with pytest.raises(ValidationError, match="must be a number, or a duration"):
        Config.model_validate({"alerts": {"metrics": [{"metric": "cost_p95", "warning": number}]}})
    with pytest.raises(ValidationError, match="must have a unit, such as 15s"):
        Config.model_validate({"alerts": {"look": number}})
