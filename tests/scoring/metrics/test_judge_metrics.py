"""The definitions of seed 001, word for word, and the shape in which they are served."""

from __future__ import annotations

import json
import math
import re

from sidejudge.scoring.metrics.judge_metrics import DEFINITIONS, Tier, available_metrics


def seed_text(shared):
    return " ".join((shared / "seeds" / "001_fb78899288c44622.txt").read_text(encoding="utf-8").split())


def test_every_definition_stands_in_the_seed_word_for_word(shared):
    seed = seed_text(shared)
    for name, definition in DEFINITIONS.items():
        assert f"ID: {name}" in seed
        assert f"Tier: {definition.tier.value.title()}" in seed
        assert f"Measures: {definition.description}" in seed
        if definition.score_type == "scored":
            for score, criteria in definition.levels:
                assert f"{score}{criteria}" in seed, name


def test_default_weights_are_the_seeds(shared):
    found = re.findall(r"ID: (\w+) .{0,40}?Default weight: ([0-9.]+) ", seed_text(shared))
    assert {name: float(weight) for name, weight in found} == {n: d.default_weight for n, d in DEFINITIONS.items()}


def test_tiers_hold_what_the_seeds_table_says():
    tiers = {tier: [n for n, d in DEFINITIONS.items() if d.tier is tier] for tier in Tier}
    assert tiers == {
        Tier.EXECUTION: ["tool_routing", "parameter_extraction", "result_interpretation", "task_completion"],
        Tier.KNOWLEDGE: ["grounding_fidelity", "instruction_compliance"],
        Tier.PROCESS: ["information_gathering", "conversation_management"],
        Tier.DELIVERY: ["response_delivery"],
    }


def test_the_eight_defaults_weigh_one_together_and_the_ninth_is_opt_in():
    defaults = [definition for definition in DEFINITIONS.values() if definition.include_in_defaults]
    assert len(defaults) == 8
    assert math.fsum(definition.default_weight for definition in defaults) == 1.0
    assert not DEFINITIONS["task_completion"].include_in_defaults


def test_they_are_served_in_the_seeds_shape():
    served = available_metrics()
    assert set(served) == {"data", "count"}
    assert served["count"] == len(served["data"]) == 9
    first = dict(served["data"][0])
    assert first.pop("rubric").splitlines()[0] == (
        "5: All expected tools called in correct sequence. No unnecessary calls."
    )
    assert first == {
        "name": "tool_routing",
        "display_name": "Tool Routing",
        "description": "Correct tool names and call sequence.",
        "tier": "execution",
        "default_weight": 0.15,
        "score_type": "scored",
        "include_in_defaults": True,
    }
    json.dumps(served)
