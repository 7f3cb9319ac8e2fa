"""What real clients sent gets the same verdicts whichever way it comes: as OTLP, or read back from a Langfuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sidejudge.integrations.otlp.wire.encode import encode_spans
from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.integrations.raw import RawSpan
from tests.conformance.langfuse_losses import VERDICTS
from tests.conformance.test_dialects import CLIENTS, SCENARIOS
from tests.end_to_end.test_langfuse_pull import ANY, ROUTES, lately, reading, reported
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import FakeLangfuse, Mode
from tests.running import Running


class Corpus:
    """The recordings, as if they had been made a minute ago. ``whole`` has the contents of log records too."""

    def __init__(self, folder: Path) -> None:
        self.whole: list[RawSpan] = []
        self.spans: list[RawSpan] = []
        self.of: dict[str, tuple[str, str]] = {}
        for client in CLIENTS:
            for scenario in SCENARIOS:
                files = sorted((folder / client / scenario).glob("[0-9]*.pb"))
                whole = {span.span_id: span for span in lately(read_files(files).spans)}
                self.whole += whole.values()
                bare = read_files([path for path in files if ".logs" not in path.name]).spans
                self.spans += [replace(whole[span.span_id], events=span.events) for span in bare]
                self.of |= {span.trace_id: (client, scenario) for span in whole.values()}


@pytest.fixture(scope="module")
def corpus(shared: Path) -> Corpus:
    return Corpus(shared / "corpus" / "otlp")


@pytest.fixture(scope="module")
def posted(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], Any]]:
    monitor = Running(tmp_path_factory.mktemp("posted"), {"routes": ROUTES, "scenarios": ANY}).start()
    monitor.post(encode_spans(corpus.whole))
    monitor.settled(len(corpus.of))
    yield reported(monitor)
    monitor.close()


@pytest.mark.parametrize(("mode", "reads"), [(Mode.NEW, "v2"), (Mode.DUAL, "v2"), (Mode.V3, "legacy")])
def test_what_real_clients_sent_gets_the_same_verdicts_by_way_of_langfuse(serving, corpus, posted, mode, reads):
    with FakeLangfuse(mode, parts=[Observations.part]) as fake:
        observations_of(fake).put(*rows_of(corpus.spans, major=3 if mode is Mode.V3 else 4))
        monitor = reading(serving, fake)
        monitor.settled(len(corpus.of))
        monitor.until(
            lambda: monitor.get("/v1/status")["pull"]["state"] == "ok", "a request that took too long is repeated"
        )
        pulled = reported(monitor)
        status = monitor.get("/v1/status")["pull"]
    assert (status["reads"], status["taken"]) == (reads, len(corpus.of))
    assert pulled.keys() == posted.keys()
    differing = {corpus.of[key[0]] for key in posted if pulled[key] != posted[key]}
    assert sorted(differing) == sorted(VERDICTS)
