"""Fuzzing of what reads untrusted bytes: ``python -m tests.faults.campaign.fuzz --target spans --seconds 60 --seed 7``.

With the extra ``faults`` mutations are guided by coverage (atheris, libFuzzer); without it they are drawn blindly. What
must hold of any input: it is read or refused with an error of ours, within ``SLOWEST_S`` of CPU, and a verdict that
comes of it has no number that is none. Whatever does not hold ends the process with another code than 0, and the input
is left in the folder of ``--keep``.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import yaml
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

GUIDED = importlib.util.find_spec("atheris") is not None
SLOWEST_S = 2.0
"""CPU seconds that one input may take; those made here have at most 64 KiB."""
LARGEST = 64 << 10
TESTS = Path(__file__).parents[2]

if GUIDED and __name__ == "__main__":  # what is imported is made anew, which nobody else wants
    import atheris  # type: ignore[import-not-found,unused-ignore]  # it may not be installed

    _watched = atheris.instrument_imports(include=["integrations", "scoring", "monitor"], enable_loader_override=False)
else:
    _watched = nullcontext()
with _watched:
    from sidejudge.integrations.cases.lines import CaseError, read_case
    from sidejudge.integrations.dialects import normalise
    from sidejudge.integrations.otlp.wire.kept import decode_kept
    from sidejudge.integrations.otlp.wire.receipt import Undecodable
    from sidejudge.integrations.otlp.wire.request import ChunkOrigin, split
    from sidejudge.integrations.otlp.wire.request_json import split_json
    from sidejudge.integrations.otlp.wire.request_logs import split_logs, split_logs_json
    from sidejudge.monitor.config.errors import ConfigError
    from sidejudge.monitor.config.load import load
    from sidejudge.scoring.case.case import Case
    from sidejudge.scoring.case.extract import extract
    from sidejudge.scoring.evaluators.score import score
    from sidejudge.scoring.rubrics import RUBRICS
    from sidejudge.scoring.rubrics.open_verdict import open_verdict
    from sidejudge.scoring.trace.trace import Trace

_ORIGIN = ChunkOrigin(None, None, 0)


class BrokenError(AssertionError):
    """Something that must hold of any input does not."""


def _spans(data: bytes) -> None:
    _judge_chunks(lambda: split(data, lambda _: _ORIGIN).chunks)


def _json(data: bytes) -> None:
    _judge_chunks(lambda: split_json(data, lambda _: _ORIGIN).chunks)


def _logs(data: bytes) -> None:
    for reader in (split_logs, split_logs_json):
        with suppress(Undecodable):
            for chunk in reader(data, lambda _: _ORIGIN).chunks:
                decode_kept([chunk.payload])


def _config(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sidejudge.yaml"
        file.write_bytes(data)
        with suppress(ConfigError):
            load(file, {})


def _case(data: bytes) -> None:
    try:
        case = read_case(data, 1)
    except CaseError:
        return
    _judge(case, tuple(RUBRICS))


def _judge_chunks(chunks: Callable[[], list]) -> None:
    try:
        kept = chunks()
    except Undecodable:
        return
    for chunk in kept[:20]:
        spans = [normalise(raw) for raw in decode_kept([chunk.payload]).spans]
        if spans:
            case = extract(Trace.of(chunk.trace_id.hex(), spans, "root_ended"), reference_keys=("expected_outcome",))
            _judge(case, ("run_health", "workflow", "qa"))


def _judge(case: Case, rubrics: tuple[str, ...]) -> None:
    for name in rubrics:
        verdict = score(case, RUBRICS[name], created_at="2026-01-01T00:00:00Z").to_json()
        numbers = [verdict["composite"], *(each["value"] for each in verdict["scores"])]
        if not all(number is None or math.isfinite(number) for number in numbers):
            raise BrokenError(f"{name} has a number that is none: {numbers}")
        open_verdict(verdict)


def _recorded() -> Iterator[bytes]:
    for path in sorted((TESTS / "data" / "otlp").rglob("*.pb")):
        yield path.read_bytes()


def _as_json() -> Iterator[bytes]:
    """Recorded requests in OTLP/JSON."""
    for data in _recorded():
        try:
            message = MessageToDict(ExportTraceServiceRequest.FromString(data), use_integers_for_enums=True)
        except DecodeError:
            continue  # a request for log records
        for resource in message["resourceSpans"]:
            for span in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64decode(span[key]).hex()
        yield json.dumps(message).encode()


def _configurations() -> Iterator[bytes]:
    for path in sorted((TESTS / "monitor" / "config").glob("*.yaml")):
        yield path.read_bytes()


def _cases() -> Iterator[bytes]:
    for path in sorted((TESTS / "golden" / "cases").rglob("*.yaml")):
        case = yaml.safe_load(path.read_text(encoding="utf-8"))["case"]
        yield json.dumps({"case_id": path.stem, **case}, default=str).encode()


TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], Iterator[bytes]]]] = {
    "spans": (_spans, _recorded),
    "json": (_json, _as_json),
    "logs": (_logs, _recorded),
    "config": (_config, _configurations),
    "case": (_case, _cases),
}
"""What is read, and what mutations begin with."""


def timed(read: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The same, and an input that takes too long is a failure."""

    def one(data: bytes) -> None:
        began = time.process_time()
        read(data)
        if (took := time.process_time() - began) > SLOWEST_S:
            raise BrokenError(f"{len(data)} bytes took {took:.1f} s of CPU")

    return one


def blindly(read: Callable[[bytes], None], corpus: list[bytes], seconds: float, seed: int, keep: Path) -> int:
    """Mutations without guidance. Returns how many inputs were read; raises what must not happen."""
    from tests.faults.campaign.hostile import mutated  # noqa: PLC0415  # only where there is no atheris

    dice, end, runs = random.Random(seed), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = mutated(dice, dice.choice(corpus))[:LARGEST]
        try:
            read(data)
        except BaseException:
            (keep / f"crash-{seed}-{runs}").write_bytes(data)
            raise
        runs += 1
    return runs


def main() -> None:
    arguments = argparse.ArgumentParser(description="Coverage-guided mutations of what reads untrusted bytes.")
    arguments.add_argument("--target", choices=sorted(TARGETS), required=True)
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--keep", type=Path, default=Path())
    given = arguments.parse_args()
    read, seeds = TARGETS[given.target]
    corpus = [data for data in seeds() if len(data) <= LARGEST]
    if not GUIDED:
        sys.stdout.write(f"{blindly(timed(read), corpus, given.seconds, given.seed, given.keep)} inputs, unguided\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(corpus):
            (Path(folder) / str(number)).write_bytes(data)
        options = [
            f"-max_total_time={given.seconds}", f"-seed={given.seed or 1}", f"-max_len={LARGEST}", "-verbosity=0",
            "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={given.keep}/",
        ]  # fmt: skip
        atheris.Setup([sys.argv[0], *options, folder], timed(read))
        atheris.Fuzz()  # ends the process


if __name__ == "__main__":
    main()
