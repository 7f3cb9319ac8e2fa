"""``sidejudge calibrate --embedding`` with a real model: thresholds are fitted, written, and part of versions."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.embed import LocalModel
from sidejudge.monitor.config import load
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.config.warnings import cautions
from sidejudge.scoring.evaluators.embedding import cosine
from tests.needs import MUSE


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("evaluators:\n  embedding: {model: muse}\n")
    return file


@MUSE.mark
def test_the_light_models_own_thresholds_find_paraphrases_that_the_seeds_miss(call, config):
    before = configured(load(config, {}))["entity"].version
    assert any("a scale of its own" in cause for cause, _ in cautions(load(config, {})))
    found = call("calibrate", "--embedding", "shipped", "--config", config, "--format", "json", "--write")
    assert found.exit_code == 0, found.output
    by_kind = {each["kind"]: each for each in json.loads(found.stdout)}
    for kind in ("statement", "entity"):
        fitted, seed = by_kind[kind]["fitted"], by_kind[kind]["seed"]
        assert 0.5 < fitted["threshold"] < 0.8
        assert fitted["same"] > seed["same"] + 0.3
        assert fitted["balanced"] > seed["balanced"]
    written = load(config, {})
    assert written.evaluators.embedding.cosines.entity == by_kind["entity"]["fitted"]["threshold"]
    assert configured(written)["entity"].version != before
    assert not any("a scale of its own" in cause for cause, _ in cautions(written))


@MUSE.mark
async def test_the_light_model_embeds_several_languages_in_one_space():
    model = LocalModel("muse")
    try:
        one, same, other = await model.embed(["Where is my money?", "¿Dónde está mi dinero?", "It rains in Oslo."])
    finally:
        await model.close()
    assert len(one) == 512
    assert cosine(one, same) > 0.7
    assert cosine(one, other) < 0.4


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ('{"one": "a", "other": "b"}', "line 1: same: is neither true nor false"),
        ('{"kind": "x", "one": "a", "other": "b", "same": true}', "line 1: kind: is not one of"),
        ('{"one": "a", "other": " ", "same": true}', "line 1: other: is no text"),
        ("nothing", "line 1: is not JSON"),
    ],
)
@MUSE.mark
def test_a_line_that_is_no_pair_is_named(call, config, tmp_path, line, cause):
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(line + "\n")
    found = call("calibrate", "--embedding", pairs, "--config", config)
    assert found.exit_code == 2
    assert cause in found.output


def test_labels_or_pairs_must_be_given(call):
    found = call("calibrate")
    assert found.exit_code == 2
    assert "no LABELS are given" in found.output
