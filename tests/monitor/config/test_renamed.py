"""Renamed keys: an old name configures what the new one does, once, with a warning."""

from __future__ import annotations

import pytest
import yaml

from sidejudge.monitor.alerting.build import declaration
from sidejudge.monitor.config import ConfigError, load, resolve
from sidejudge.monitor.config.renamed import old_mode

MODEL = "openai/gpt-4.1-mini-2025-04-14"


def test_the_old_key_of_a_file_configures_the_new_section(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(f"routes: [{{rubrics: [qa]}}]\nanswerers: {{judge: {{model: {MODEL}}}}}\n")
    loaded = resolve(path, {})
    assert loaded.config.evaluators.judge.model == MODEL
    assert loaded.origin(("evaluators", "judge", "model")) == "line 2"
    assert loaded.renamed == (("answerers", "evaluators"),)


def test_the_old_variables_set_the_new_keys():
    loaded = resolve(None, {"SIDEJUDGE_ANSWERERS__JUDGE__MODEL": MODEL})
    assert loaded.config.evaluators.judge.model == MODEL
    assert loaded.origin(("evaluators", "judge", "model")) == "SIDEJUDGE_ANSWERERS__JUDGE__MODEL"
    assert loaded.renamed == (("SIDEJUDGE_ANSWERERS__JUDGE__MODEL", "SIDEJUDGE_EVALUATORS__JUDGE__MODEL"),)


def test_a_new_variable_reaches_into_an_old_section(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(f"answerers: {{judge: {{model: {MODEL}, retries: 1}}}}\n")
    judge = resolve(path, {"SIDEJUDGE_EVALUATORS__JUDGE__RETRIES": "2"}).config.evaluators.judge
    assert (judge.model, judge.retries) == (MODEL, 2)


def test_two_variables_for_one_key_are_refused():
    both = {f"SIDEJUDGE_{name}__JUDGE__MODEL": MODEL for name in ("ANSWERERS", "EVALUATORS")}
    with pytest.raises(ConfigError) as refused:
        resolve(None, both)
    assert "sets the same key as SIDEJUDGE_ANSWERERS__JUDGE__MODEL" in str(refused.value)


def test_the_new_names_need_no_warning():
    assert resolve(None, {"SIDEJUDGE_EVALUATORS__JUDGE__MODEL": MODEL}).renamed == ()


def test_an_old_key_of_a_reference_is_read_with_a_warning(tmp_path):
    path = tmp_path / "sidejudge.yaml"
    path.write_text(f"references: [{{file: {tmp_path}/r.jsonl, key: trace_id, revise_within: 3d}}]\n")
    (tmp_path / "r.jsonl").write_text("")
    loaded = resolve(path, {})
    assert str(loaded.config.references[0].within) == "3d"
    assert loaded.renamed == (("references[0].revise_within", "references[0].reevaluate_within"),)


def test_both_names_of_a_key_of_a_reference_are_a_mistake_with_its_line(tmp_path):
    path = tmp_path / "sidejudge.yaml"
    path.write_text("references:\n  - {langfuse_dataset: d, revise_within: 3d, reevaluate_within: 4d}\n")
    with pytest.raises(ConfigError, match=r"references\[0\].revise_within .*line 2.*keep reevaluate_within alone"):
        resolve(path, {})


SEQUENCE = {"SIDEJUDGE_ALERTS__MODE": "sequence"}


@pytest.mark.parametrize(
    ("old", "rate"),
    [
        ({}, 0.05),
        ({"SIDEJUDGE_ALERTS__SEQUENCE__ERROR": "0.02", "SIDEJUDGE_ALERTS__SEQUENCE__PERIOD": "6d"}, 0.1),
        ({"SIDEJUDGE_ALERTS__SEQUENCE": "{error: 0.5, period: 1s}"}, 1000),
        ({"SIDEJUDGE_ALERTS__SEQUENCE__ERROR": "5e-324"}, 1e-9),
        ({"SIDEJUDGE_ALERTS__FALSE_ALARMS_PER_MONTH": "2", "SIDEJUDGE_ALERTS__SEQUENCE__ERROR": "0.02"}, 2),
    ],
)
def test_mode_sequence_is_adaptive_with_as_many_false_alarms_as_it_promised(old, rate):
    found = load(None, SEQUENCE | old)
    adaptive = load(None, {"SIDEJUDGE_ALERTS__FALSE_ALARMS_PER_MONTH": str(rate)})
    assert declaration(found) == declaration(adaptive), "whatever comes, statuses and alerts are the same"
    ((cause, remedy),) = old_mode(found.alerts)
    assert f"adaptive, which is in force with alerts.false_alarms_per_month: {rate}" in cause
    assert remedy.startswith(f"set alerts.mode: adaptive and alerts.false_alarms_per_month: {rate}, ")
    assert not list(old_mode(adaptive.alerts))


def test_settings_of_the_old_mode_are_named_where_another_is_in_force(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump({"alerts": {"mode": "bound", "sequence": {"error": 0.1}}}))
    ((cause, _),) = old_mode(load(path, {}).alerts)
    assert cause == "alerts.sequence does nothing in mode bound"


def test_no_number_of_false_alarms_is_too_small_to_compute_with():
    few = {
        "SIDEJUDGE_ALERTS__FALSE_ALARMS_PER_MONTH": "5e-324",
        "SIDEJUDGE_ALERTS__SLICE_FALSE_ALARMS_PER_MONTH": "5e-324",
    }
    fewest = declaration(load(None, few))
    assert fewest.slice_chart("", 100.0, 5, 0.9).run_length > 1e12
    assert fewest.collapse_chart("", 100.0, 5).run_length > 1e12
    assert fewest.new_sequence("").levels
