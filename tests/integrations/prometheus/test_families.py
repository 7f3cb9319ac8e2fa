from __future__ import annotations

import re

from sidejudge.integrations.prometheus import families
from sidejudge.integrations.prometheus.families import FAMILIES, LABELS, Family


def test_names_follow_the_conventions():
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    for family in FAMILIES:
        assert re.fullmatch(r"sidejudge(_[a-z]+)+", family.name), family.name
        assert family.name.endswith("_total") == (family.kind == "counter"), family.name
        assert family.name.endswith("_info") == (family.kind == "info"), family.name
        assert bool(family.buckets) == (family.kind == "histogram"), family.name
        assert family.help.endswith("."), family.name
        assert "\n" not in family.help, family.name


def test_labels_are_those_described_and_no_name_repeats_one():
    assert {label for family in FAMILIES for label in family.labels} == set(LABELS)
    assert not {"namespace", "pod", "job", "instance", "trace_id", "user_id", "le"} & set(LABELS)


def test_every_declaration_is_listed():
    assert {value for value in vars(families).values() if isinstance(value, Family)} == set(FAMILIES)
