"""Lines judged in groups give what they give one at a time, and a pipe is never waited for."""

import re
from dataclasses import dataclass, field, replace

import orjson

from sidejudge.monitor.config import Config
from sidejudge.monitor.offline.score.case_lines import NumberedLine
from sidejudge.monitor.offline.score.request import ScoreRequest
from sidejudge.monitor.offline.score.run import Batch
from sidejudge.monitor.offline.score.tally import RecordedRemarks
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.span import SpanKind
from tests.spans import span, trace

LABELS = {"detected_keywords": ["loan"], "detected_topics": ["fees"]}
CASE = {
    "model_output": LABELS, "expected_outcome": LABELS, "transcript": "loan", "config": {"keywords": ["loan", "fees"]},
}  # fmt: skip
ASKED = ScoreRequest(config=None, fingerprint="", chosen=("entity",))
TEXTS = [b"no case" if at % 50 == 7 else orjson.dumps({"case_id": f"c{at}", **CASE}) for at in range(1, 151)]


@dataclass
class Written:
    """Takes verdicts; the first ``standing`` stand already."""

    standing: list[bytes] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    walked = False

    def existing(self, wanted):
        return orjson.loads(self.standing.pop(0)) if self.standing else None

    def append(self, verdict):
        self.lines.append(re.sub(rb'"created_at":"[^"]*"', b'"created_at":""', verdict))

    def all_walked(self):
        assert not self.standing


def judged(source, *, in_groups, standing=()):
    verdicts, remarks, progress = Written(list(standing)), RecordedRemarks(), []
    batch = Batch(ASKED, Config(), remarks, in_groups=in_groups)
    tally = batch.run(source(verdicts), verdicts, lambda read, _number: progress.append(read))
    return verdicts.lines, remarks.kept, progress[-1], tally.counts, tally.bad_lines


def all_at_once(_):
    return [NumberedLine(number, text, 10 * number) for number, text in enumerate(TEXTS, 1)]


def test_groups_of_lines_give_the_verdicts_remarks_and_counts_of_single_lines_also_after_some_that_stand():
    alone = judged(all_at_once, in_groups=False)
    assert judged(all_at_once, in_groups=True) == alone
    assert (len(alone[0]), alone[2:]) == (147, (1500, (147, 0, 0), 3))
    assert judged(all_at_once, in_groups=True, standing=alone[0][:70]) == (alone[0][70:], *alone[1:])


def test_a_line_of_a_pipe_is_judged_before_the_next_one_comes():
    def pipe(verdicts):
        for number, text in enumerate(TEXTS[:5], 1):
            assert len(verdicts.lines) == number - 1
            yield NumberedLine(number, text, number)

    assert len(judged(pipe, in_groups=False)[0]) == 5


def test_a_recorded_trace_is_judged_with_its_spans_as_a_monitor_judges_it():
    """An agent around all others is the orchestrator, which the case format does not show."""
    top = span(span_id="top", parent_id=None, kind=SpanKind.AGENT, agent="boss", output="x", end_ns=9)
    inner = span(span_id="in", parent_id="top", kind=SpanKind.AGENT, agent="writer", output="x", start_ns=1, end_ns=2)
    wanted = {"agents_should_include": ["writer"]}
    case = replace(extract(trace(top, inner)), scenario=wanted)
    text = orjson.dumps({
        "case_id": case.case_id, "scenario": wanted, "agents_called": ["boss", "writer"], "model_output": "x",
    })  # fmt: skip
    found = []
    for line in (NumberedLine(1, text, 1, case), NumberedLine(1, text, 1)):
        written = Written()
        asked = replace(ASKED, chosen=("workflow",))
        Batch(asked, Config(), RecordedRemarks()).run([line], written, lambda _read, _number: None)
        found += [orjson.loads(verdict)["passed"] for verdict in written.lines]
    assert found == [True, False]
