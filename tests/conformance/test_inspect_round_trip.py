"""What `inspect --format json` writes of a recording is read back by `score` as the same case."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from sidejudge.integrations.cases.lines import read_case_with_remarks
from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.monitor.api.inspect import inspect_spans
from sidejudge.scoring.case.grounds import headless
from sidejudge.scoring.metrics.run_ending import answered, has_no_answer
from sidejudge.scoring.result.result import Scored
from tests.conformance.test_dialects import CLIENTS, KEPT, SCENARIOS


def no_answer(case):
    """Whether the run fails because it gave no answer."""
    found = answered.start(case)
    return isinstance(found, Scored) and found.value == 0.0


def differing(folders):
    """Fields that come back otherwise, and those that the reader does not know; and how many cases have hand-offs."""
    found, handed_over = set(), 0
    for folder in folders:
        for inspected in inspect_spans(read_files(sorted(folder.glob("*.pb"))).spans):
            case, remarks = read_case_with_remarks(json.dumps(inspected.to_json(provenance=True)), 1)
            compared = [field.name for field in fields(case) if field.compare]
            left = replace(
                inspected.case,
                model_output="" if has_no_answer(inspected.case) else inspected.case.model_output,
                root_span_id=None if headless(inspected.case) else inspected.case.root_span_id,
            )
            found |= {name for name in compared if getattr(case, name) != getattr(left, name)} | {*remarks}
            if (failed := no_answer(inspected.case)) != no_answer(case):
                found.add(f"{'a missing' if failed else 'no missing'} answer")
            handed_over += any(call.handoff for call in case.tools_used or ())
    return found, handed_over


@pytest.mark.parametrize("client", CLIENTS)
def test_every_field_of_a_recording_comes_back(shared, client):
    found, _ = differing(shared / "corpus" / "otlp" / client / scenario for scenario in SCENARIOS)
    assert found == set()


def test_so_does_every_field_of_the_recordings_kept_here_with_their_hand_offs():
    found, handed_over = differing(sorted({path.parent for path in KEPT.rglob("*.pb")}))
    assert found == set()
    assert handed_over >= 10
