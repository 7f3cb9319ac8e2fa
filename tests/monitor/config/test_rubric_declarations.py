"""Declared rubrics in the configuration: what is declared is what everything downstream gets."""

from __future__ import annotations

import time

import pytest

from sidejudge.monitor.config import ConfigError, load, resolve
from sidejudge.monitor.config.rubric_section import CHECK_NAMES
from sidejudge.monitor.config.rubrics import cards, configured, reached
from sidejudge.scoring.checks.registry import CHECKS
from sidejudge.scoring.verdict.score import score_name

OWN = """
routes:
  - {match: {service: shop}, rubrics: [own]}
rubrics:
  own:
    metrics:
      - {id: a, check: {contains: x}, weight: 0.25}
      - {id: b, check: {regex: 'y+'}, weight: 0.75}
"""


def written(tmp_path, text, name="sidejudge.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_declared_rubric_is_configured_reached_and_has_cards(tmp_path):
    config = load(written(tmp_path, OWN), {})
    rubric = configured(config)["own"]
    assert [each.weight for each in rubric.criteria] == [0.25, 0.75]
    assert "own" in reached(config)
    assert [card.score_name for card in cards({"own": rubric})] == ["own_a", "own_b"]
    assert all(len(score_name("own", each.metric)) <= 35 for each in rubric.criteria)


def test_a_rubric_of_a_file_is_the_same_as_one_in_place_and_says_where_it_stands(tmp_path):
    here = configured(load(written(tmp_path, OWN), {}))["own"]
    head, _, section = OWN.partition("rubrics:\n  own:")
    (tmp_path / "own.yaml").write_text("own:" + section.replace("\n  ", "\n"))
    loaded = resolve(written(tmp_path, head + "rubric_files: [own.yaml]\n", "other.yaml"), {})
    assert configured(loaded.config)["own"].version == here.version
    assert loaded.origin(("rubrics", "own", "metrics")).endswith("own.yaml, line 2")


def test_a_rubric_file_may_stand_below_rubrics_as_a_configuration_has_it(tmp_path):
    (tmp_path / "own.yaml").write_text(OWN[OWN.index("rubrics:\n") :])
    loaded = resolve(written(tmp_path, OWN.partition("rubrics:\n  own:")[0] + "rubric_files: [own.yaml]\n"), {})
    assert configured(loaded.config)["own"].version == configured(load(written(tmp_path, OWN), {}))["own"].version
    assert loaded.origin(("rubrics", "own", "metrics")).endswith("own.yaml, line 3")
    (tmp_path / "own.yaml").write_text("rubrics:\n  metrics: [{id: a, check: {contains: x}}]\n")
    named_so = load(written(tmp_path, "rubric_files: [own.yaml]\n"), {})
    assert "rubrics" in configured(named_so), "a rubric may have this name"
    (tmp_path / "own.yaml").write_text("rubrics:\n  own:\n    metrics: []\n")
    with pytest.raises(ConfigError, match=r"own.yaml, line 3"):
        load(written(tmp_path, "rubric_files: [own.yaml]\n"), {})


@pytest.mark.parametrize(
    ("name", "text", "mistake"),
    [
        ("s.yaml", b"type: object\ntype: array\n", r"type \(.*s\.yaml, line 2\): stands twice; first on line 1"),
        ("s.yaml", b"type: !x object\n", r"type \(.*s\.yaml, line 1\): has the tag !x"),
        ("s.yaml", b"required: [a\n", r"s\.yaml, line 2: is not YAML"),
        ("s.yaml", b"title: \xff\n", r"s\.yaml: it is not UTF-8"),
        ("s.json", b"{", r"s\.json: it is not JSON"),
    ],
)
@pytest.mark.parametrize("check", ["is-json: {schema: NAME}", "tool-args: {pay: NAME}"])
def test_mistakes_in_the_file_of_a_schema_are_refused_with_their_place(tmp_path, name, text, mistake, check):
    (tmp_path / name).write_bytes(text)
    own = OWN.replace("contains: x", check.replace("NAME", name))
    with pytest.raises(ConfigError, match=rf"rubrics\.own\.metrics\[0\]\.check.*: cannot be read: .*{mistake}"):
        load(written(tmp_path, own), {})


def test_the_fingerprint_changes_with_a_declaration(tmp_path):
    before = load(written(tmp_path, OWN), {}).fingerprint
    assert load(written(tmp_path, OWN), {}).fingerprint == before
    assert load(written(tmp_path, OWN.replace("y+", "z+")), {}).fingerprint != before


@pytest.mark.parametrize(
    ("judges", "section", "stated"),
    [("sessions", "routes", "name it in sessions.routes"), ("traces", "sessions", "name it in routes")],
)
def test_a_rubric_is_routed_to_what_it_judges(tmp_path, judges, section, stated):
    text = OWN.replace("metrics:", f"judges: {judges}\n    metrics:")
    if section == "sessions":
        text = text.replace(
            "routes:\n  - {match: {service: shop}, rubrics: [own]}", "sessions: {routes: [{rubrics: [own]}]}"
        )
    with pytest.raises(ConfigError, match=stated):
        load(written(tmp_path, text), {})


def test_the_schema_for_editors_names_every_check():
    assert set(CHECK_NAMES) == {f"{negation}{name}" for name in CHECKS for negation in ("", "not-")}


def test_a_thousand_declared_metrics_are_read_in_less_than_two_seconds_of_computing(tmp_path):
    rubrics = []
    for number in range(50):
        metrics = [f"      - {{id: m{at}, check: {{regex: 'a{at}+'}}}}" for at in range(10)]
        metrics += [f"      - {{id: n{at}, check: {{not-contains: b{at}}}}}" for at in range(5)]
        metrics += [f"      - {{id: q{at}, ask: 'Is {{{{output}}}} fine, and {at}?'}}" for at in range(5)]
        rubrics.append("\n".join([f"  r{number}:", "    metrics:", *metrics]))
    path = written(tmp_path, "rubrics:\n" + "\n".join(rubrics))
    before = time.process_time()
    config = load(path, {})
    assert sum(len(configured(config)[f"r{n}"].criteria) for n in range(50)) == 1000
    assert time.process_time() - before < 2.0
