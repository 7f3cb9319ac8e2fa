"""Reading a verdict file twice: what stands, while somebody may be writing it."""

from __future__ import annotations

import json
from pathlib import Path

from sidejudge.monitor.offline.score.verdict_source import VerdictSource
from sidejudge.scoring.scorecards.scorecard import empty_tally
from tests.verdict_lines import json_lines, verdict_line


def test_what_is_appended_between_the_readings_is_left_to_the_next_call(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(json.dumps(verdict_line("a", composite=0.2, trace_id="t1")) + "\n")
    size, appended = path.stat().st_size, []

    def append(read: int) -> None:
        if read == size and not appended:
            appended.append(read)
            with path.open("a") as file:
                file.write(json.dumps(verdict_line("a", composite=1.0, trace_id="t1", revision=2)) + "\n")

    tally = empty_tally()
    VerdictSource(path=path, complain=str).read_into(tally, append)
    assert appended
    assert (tally.rubrics["qa"].mean.n, tally.rubrics["qa"].mean.value) in {(1, 0.2), (1, 1.0)}


def test_progress_comes_to_twice_the_size_of_the_file(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "v.jsonl", (verdict_line(str(n)) for n in range(5)))
    heard: list[int] = []
    VerdictSource(path=path, complain=str).read_into(empty_tally(), heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 2 * path.stat().st_size
