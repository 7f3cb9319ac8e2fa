"""Cases a second of every rubric, beside the nearest that others offer for the same cases.

    python tests/bench/bench_scoring.py [--peers PYTHON] [--cases N]

By rubric: the golden stories, judged again and again without a judge. Beside others: cases with two keyword lists of
three to eight words each; every library is asked for precision, recall and F1 of keywords, or the nearest that it has,
its case objects included. Ours is the *whole* entity rubric with its verdict, and, to compare like with like, its three
keyword metrics alone. ``--peers`` is a Python with deepeval and ragas (``make bench-peers`` makes one in
``.venv-peers``). CPU time, best of several laps; the ratio is the point.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from sidejudge.integrations.cases.lines import read_case
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.evaluators.lexical import answer
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.questions.question import run
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import Message, Span, SpanKind, ToolCall, Usage
from sidejudge.scoring.trace.trace import Trace

HERE = Path(__file__).parent
STORIES = HERE.parent / "golden" / "cases"
LAPS = 7
WORDS = [
    "loan",
    "refund",
    "card",
    "account",
    "transfer",
    "statement",
    "branch",
    "limit",
    "fee",
    "rate",
    "form",
    "visit",
]
KEYWORD_METRICS = ("keyword_precision", "keyword_recall", "keyword_f1")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", type=Path, default=HERE.parent.parent / ".venv-peers" / "bin" / "python")
    parser.add_argument("--cases", type=int, default=1000)
    given = parser.parse_args()
    console = Console()
    console.print(by_rubric())
    console.print(by_span())
    console.print(beside_others(given.cases, given.peers))
    console.print(in_constant_memory())


def by_span() -> Table:
    """run_health on long runs, beside extracting the case from the same spans."""
    table = Table("spans", "run_health, µs a span", "extracting, µs a span", "ratio", title="run_health", box=None)
    for calls in (5, 25, 100):
        trace = long_run(calls)
        case = extract(trace)
        judging = best(judge_health, lambda case=case: [case.drawn(1.0, None) for _ in range(30)]) / 30
        extracting = best(extract_all, lambda trace=trace: [trace] * 30) / 30
        spans = len(trace.spans)
        table.add_row(
            str(spans), f"{judging / spans * 1e6:.1f}", f"{extracting / spans * 1e6:.1f}", f"{judging / extracting:.1f}"
        )
    return table


def judge_health(cases: Sequence[Case]) -> None:
    for case in cases:
        score(case, RUBRICS["run_health"], created_at="")


def extract_all(traces: Sequence[Trace]) -> None:
    for trace in traces:
        extract(trace)


def long_run(calls: int) -> Trace:
    """An agent that asks a model and calls a tool again and again; results of a hundred characters."""
    top = {"trace_id": "1" * 32, "dialect": "bench", "parent_id": "top"}
    spans = [
        Span(**{**top, "parent_id": None}, span_id="top", name="desk", kind=SpanKind.AGENT, agent="desk", start_ns=0,
             end_ns=10**12, input="Which ship leaves first?", output="Aurora 3 sails at 3.")
    ]  # fmt: skip
    for number in range(calls):
        call = ToolCall(name="find_ship", arguments={"port": f"P{number}"}, result=SHIP.format(n=number))
        said = Message(role="assistant", tool_calls=(ToolCall(name="find_ship", arguments=call.arguments),))
        at = number * 10**9
        spans += [
            Span(**top, span_id=f"m{number}", name="chat", kind=SpanKind.LLM, start_ns=at, end_ns=at + 10**8,
                 output_messages=(said,), finish_reason="tool_calls", usage=Usage(input=10, output=5),
                 tool_definitions=(OFFER,)),
            Span(**top, span_id=f"t{number}", name="find_ship", kind=SpanKind.TOOL, start_ns=at + 2 * 10**8,
                 end_ns=at + 3 * 10**8, tool=call, output=call.result),
        ]  # fmt: skip
    return Trace.of("1" * 32, spans, "batch")


SHIP = "the ship Aurora {n} sails at {n} from harbour {n}7 with {n} containers and a crew of {n}3, run by line {n}"
OFFER = json.dumps([{"name": "find_ship", "parameters": {"type": "object", "required": ["port"]}}])


def by_rubric() -> Table:
    table = Table("rubric", "stories", "µs a case", "cases/s", title="every rubric, without a judge", box=None)
    evaluator = Evaluator(RUBRICS)
    for name in RUBRICS:
        lines = [
            json.dumps({"case_id": path.stem, **yaml.safe_load(path.read_text(encoding="utf-8"))["case"]})
            for path in sorted((STORIES / name).glob("*.yaml"))
        ]
        if not lines:
            continue
        laps = itertools.repeat(lines, -(-300 // len(lines)))

        def judge(cases: Sequence[Case], name: str = name) -> None:
            for case in cases:
                evaluator.evaluate(case, (name,), created_at="")

        texts = [line for lap in laps for line in lap]
        each = best(judge, lambda texts=texts: [read_case(text, 1) for text in texts]) / len(texts)
        table.add_row(name, str(len(lines)), f"{each * 1e6:.0f}", f"{1 / each:,.0f}")
    return table


def beside_others(count: int, peers: Path) -> Table:
    made = keyword_cases(count)
    lines = [json.dumps(line) for line in made]
    evaluator = Evaluator(RUBRICS)
    metrics = [c.metric for c in RUBRICS["entity"].criteria if c.metric.id in KEYWORD_METRICS]

    def whole(cases: list[Case]) -> None:
        while cases:  # as `score` does it, none is kept: garbage collection would walk through all that were judged
            evaluator.evaluate(cases.pop(), ("entity",), created_at="")

    def alone(cases: Sequence[Case]) -> None:
        for case in cases:
            run({metric.id: metric.start(case) for metric in metrics}, lambda q, case=case: answer(case, q))

    def read() -> list[Case]:
        return [read_case(line, 1) for line in lines]

    pairs = [(c["expected_outcome"]["detected_keywords"], c["model_output"]["detected_keywords"]) for c in made]
    taken = {
        "plain Python sets, P/R/F1 (baseline)": best(plain, lambda: pairs) / count,
        "sidejudge, P/R/F1 of keywords": best(alone, read) / count,
        "sidejudge, whole entity rubric and verdict": best(whole, read) / count,
        "scikit-learn, one batch": best(scikit_learn, lambda: pairs) / count,
        "scikit-learn, case by case": best(scikit_learn_by_case, lambda: pairs[:100], laps=2) / min(count, 100),
    }
    stated = ""
    if peers.exists():
        requested = subprocess.run(
            [str(peers), str(HERE / "peers.py")], input=json.dumps(pairs), capture_output=True, text=True, check=False
        )
        if requested.returncode == 0:
            taken |= json.loads(requested.stdout.splitlines()[-1])
        stated = "" if requested.returncode == 0 else requested.stderr.strip().rpartition("\n")[2]
    else:
        stated = "deepeval and ragas are not installed: make bench-peers"
    base = taken["plain Python sets, P/R/F1 (baseline)"]
    table = Table("what", "µs a case", "cases/s", "of the baseline", title=f"{count} cases", caption=stated, box=None)
    for name, each in sorted(taken.items(), key=lambda item: item[1]):
        table.add_row(name, f"{each * 1e6:.1f}", f"{1 / each:,.0f}", f"{each / base:.0f} ×")
    return table


def in_constant_memory() -> Table:
    """``sidejudge score`` as a process, for 1, 10 and 100 thousand cases: throughput and largest resident set."""
    table = Table("cases", "seconds", "cases/s", "largest RSS, MB", title="sidejudge score --rubric entity", box=None)
    line = json.dumps(keyword_cases(1)[0])
    with tempfile.TemporaryDirectory() as folder:
        for count in (1_000, 10_000, 100_000):
            cases, out = Path(folder) / "cases.jsonl", Path(folder) / f"{count}.jsonl"
            with cases.open("w") as file:
                file.writelines(line.replace("case-0", f"case-{number}") + "\n" for number in range(count))
            start, largest = time.perf_counter(), 0
            command = ["-P", "-m", "sidejudge", "score", str(cases), "--out", str(out), "--rubric", "entity"]
            with subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL) as process:
                while process.poll() is None:
                    largest = max(largest, resident(process.pid))
                    time.sleep(0.02)
            seconds = time.perf_counter() - start
            if process.returncode:
                raise SystemExit(f"score ended with {process.returncode}")
            table.add_row(f"{count:,}", f"{seconds:.1f}", f"{count / seconds:,.0f}", f"{largest / 2**20:.0f}")
    return table


def resident(pid: int) -> int:
    """Bytes resident now; 0 once the process is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def keyword_cases(count: int) -> list[dict[str, Any]]:
    rng = random.Random(7)

    def lists() -> dict[str, list[str]]:
        return {"detected_keywords": rng.sample(WORDS, rng.randint(3, 8)), "detected_topics": rng.sample(WORDS, 2)}

    return [
        {
            "case_id": f"case-{number}", "task": "entity", "transcript": " ".join(rng.choices(WORDS, k=60)),
            "model_output": lists(), "expected_outcome": lists(), "config": {"keywords": WORDS},
        }
        for number in range(count)
    ]  # fmt: skip


def plain(pairs: Sequence[tuple[list[str], list[str]]]) -> None:
    for expected, found in pairs:
        both = len(set(expected) & set(found))
        precision, recall = both / len(set(found)), both / len(set(expected))
        _ = 2 * precision * recall / (precision + recall) if both else 0.0


def scikit_learn(pairs: Sequence[tuple[list[str], list[str]]]) -> None:
    from sklearn.metrics import precision_recall_fscore_support  # noqa: PLC0415  # a peer, not a part
    from sklearn.preprocessing import MultiLabelBinarizer  # noqa: PLC0415  # likewise

    columns = MultiLabelBinarizer(classes=WORDS)
    expected, found = (columns.fit_transform([pair[side] for pair in pairs]) for side in (0, 1))
    precision_recall_fscore_support(expected, found, average="samples", zero_division=0)


def scikit_learn_by_case(pairs: Sequence[tuple[list[str], list[str]]]) -> None:
    for pair in pairs:
        scikit_learn([pair])


def best(work: Callable[[Any], None], prepare: Callable[[], Any], laps: int = LAPS) -> float:
    """Least CPU seconds of one lap; what is prepared afresh for each lap is not counted."""
    seconds = []
    for _ in range(laps):
        given = prepare()
        start = time.process_time()
        work(given)
        seconds.append(time.process_time() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
