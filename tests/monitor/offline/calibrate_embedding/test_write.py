"""Write: thresholds go into the section, in place of those before; everything else stays as it was."""

from __future__ import annotations

import json

import pytest
import yaml

from sidejudge.monitor.offline.calibrate_embedding import NotWrittenError, read_pairs, write_thresholds

FITTED = {"entity": 0.61, "statement": 0.63}


@pytest.mark.parametrize(
    "text",
    [
        "# ours\nevaluators:\n  embedding:\n    model: muse  # light\nsampling: {rate: 0.1}\n",
        "evaluators: {embedding: {model: muse}}  # short\n",
        "evaluators:\n  embedding: {thresholds: {entity: 0.5}, model: muse}\n",
        "evaluators:\n  embedding:\n    thresholds:\n      entity: 0.5\n    # why\n    model: muse\n",
    ],
)
def test_thresholds_are_written_into_the_section_and_comments_stay(tmp_path, text):
    file = tmp_path / "c.yaml"
    file.write_text(text)
    write_thresholds(file, FITTED, lambda _: None)
    found = yaml.safe_load(file.read_text())
    assert found["evaluators"]["embedding"] == {"model": "muse", "thresholds": FITTED}
    assert [line for line in text.split() if line.startswith("#")] == [
        line for line in file.read_text().split() if line.startswith("#")
    ]
    once = file.read_text()
    write_thresholds(file, FITTED, lambda _: None)
    assert file.read_text() == once


def test_what_would_be_no_configuration_is_not_written(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("evaluators: {embedding: {model: muse}}\n")

    def refuse(_):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        write_thresholds(file, FITTED, refuse)
    assert file.read_text() == "evaluators: {embedding: {model: muse}}\n"
    assert list(tmp_path.iterdir()) == [file]
    file.write_text("sampling: {rate: 0.1}\n")
    with pytest.raises(NotWrittenError, match="no section"):
        write_thresholds(file, FITTED, lambda _: None)


def test_a_line_separator_within_a_text_ends_no_pair(tmp_path):
    pair = {"kind": "statement", "one": "Refund\u2028booked", "other": "Refund booked", "same": True}
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(pair, ensure_ascii=False) + "\n", encoding="utf-8")
    assert [each.one for each in read_pairs(str(path))] == ["Refund\u2028booked"]
