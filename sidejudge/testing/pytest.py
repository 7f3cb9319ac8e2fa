"""A plugin for pytest: traces of the code under test are captured, judged, and fail their test with the reason.

    # conftest.py
    pytest_plugins = ["sidejudge.testing.pytest"]

    # test_agent.py
    @pytest.mark.sidejudge(rubric="run_health")
    def test_a_refund():
        answer("I want my money back")

Spans come from OpenTelemetry's SDK through its in-memory exporter as the application ends them; nothing is sent. Needs
the extra ``otel``.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest

from sidejudge.monitor.offline.experiment.score_cases import Rubrics, Verdicts, score
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.trace.span import SpanKind
from sidejudge.scoring.trace.trace import Trace
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.verdict import Verdict

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

MARK: Final = "sidejudge"
INI: Final = "sidejudge_config"
_GIVEN: Final = ("expected_outcome", "scenario", "task")
_ARGUMENTS: Final = ("rubric", "config", *_GIVEN)
_ON: Final = pytest.StashKey["CapturedTraces"]()
_EXPORTERS: Final = pytest.StashKey[dict[int, "tuple[TracerProvider, InMemorySpanExporter]"]]()
_REMEDY: Final = (
    "does the code under test make spans, and of this provider? Where it has one of its own, return that from a "
    "fixture sidejudge_tracer_provider"
)
_Rubric: TypeAlias = Rubric | str | Rubrics


class CapturedTraces:
    """The traces of the code that a test runs. A span belongs to the test during which it ends."""

    def __init__(self, exporter: InMemorySpanExporter, config: Path | None) -> None:
        self._exporter, self._config = exporter, config

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The traces with a model, an agent or a tool, in order of their beginning; all, where none has one."""
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans  # noqa: PLC0415  # of an extra

        from sidejudge.integrations.dialects import normalise  # noqa: PLC0415  # slow to import: only where it is used
        from sidejudge.integrations.otlp.wire.decode import decode_spans  # noqa: PLC0415  # as above

        ended = self._exporter.get_finished_spans()
        spans = [normalise(raw) for raw in decode_spans(encode_spans(ended).SerializeToString())] if ended else []
        found = [
            Trace.of(id_, [each for each in spans if each.trace_id == id_], "batch")
            for id_ in dict.fromkeys(each.trace_id for each in spans)
        ]
        found.sort(key=lambda each: each.start_ns)
        known = [each for each in found if any(span.kind is not SpanKind.OTHER for span in each.spans)]
        return tuple(known or found)

    def clear(self) -> None:
        """Drop all captured spans, for example those of a test's set-up."""
        self._exporter.clear()

    def verdicts(self, rubric: _Rubric, *, config: Path | str | None = None, **given: object) -> Verdicts:
        """The verdicts on the traces.

        Args:
            rubric: A rubric, its name, or several.
            config: A configuration file; None: the one that ``sidejudge_config`` names in pytest's, if any.
            given: Fields of the case that spans do not show: ``expected_outcome``, ``scenario`` and ``task``.
        """
        from sidejudge.scoring.case.extract import extract  # noqa: PLC0415  # as above

        cases = [replace(extract(trace), **given) for trace in self.traces]  # type: ignore[arg-type]  # its reader checks them
        return score(cases, rubric, config=config or self._config, progress=False)

    def judge(self, rubric: _Rubric, *, config: Path | str | None = None, **given: object) -> Verdicts:
        """The verdicts if all passed; otherwise, or if nothing was captured, the test fails with the reasons.

        An incomplete verdict has not passed. The arguments are those of ``verdicts``.
        """
        __tracebackhide__ = True
        found = self.verdicts(rubric, config=config, **given)
        if not found:
            pytest.fail(f"sidejudge: no trace was captured; {_REMEDY}", pytrace=False)
        traces = {each.trace_id: each for each in self.traces}
        if failures := [_failure(each, traces) for each in found if each.passed is not True]:
            pytest.fail("\n".join(failures), pytrace=False)
        return found


def _failure(verdict: Verdict, traces: Mapping[str, Trace]) -> str:
    """The report of a failed test on a verdict: its reason, the trace, and each metric below its best value."""
    trace = traces.get(verdict.trace_id or "")
    name = f" ({trace.root.name}, {len(trace.spans)} spans)" if trace is not None and trace.root is not None else ""
    word = "failed" if verdict.passed is False else "could not be judged"
    metrics = (
        f"  {each.metric} {each.result.value:.3g}: {each.result.reason}"
        for each in verdict.scores
        if isinstance(each.result, Scored) and each.result.value < 1 and each.result.reason
    )
    head = f"sidejudge: {verdict.rubric} {word}: {verdict.reason}"
    return "\n".join((head, f"  trace {verdict.trace_id}{name}", *metrics))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the key of pytest's configuration."""
    parser.addini(INI, "a configuration of sidejudge, relative to pytest's", type="string", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers",
        f"{MARK}({', '.join(f'{each}=…' for each in _ARGUMENTS)}): judge the traces that the test makes by a rubric, "
        "and fail it with the reason",
    )
    config.stash[_EXPORTERS] = {}


def _need_otel() -> None:
    """Fail where only a part of the extra is installed: many applications have only the SDK."""
    try:
        import opentelemetry.exporter.otlp.proto.common.trace_encoder  # noqa: PLC0415  # of an extra
        import opentelemetry.sdk.trace  # noqa: F401, PLC0415  # likewise
    except ImportError as error:
        cause = f"sidejudge: the extra 'otel' is not installed whole: {error}; pip install 'sidejudge[otel]'"
        pytest.fail(cause, pytrace=False)


@pytest.fixture(scope="session")
def sidejudge_tracer_provider() -> TracerProvider:
    """The provider whose spans are captured: the global one, made if missing. May be overridden."""
    _need_otel()
    from opentelemetry import trace  # noqa: PLC0415  # of an extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  # likewise

    found = trace.get_tracer_provider()
    if not isinstance(found, TracerProvider):
        found = TracerProvider()
        trace.set_tracer_provider(found)
    return found


@pytest.fixture
def sidejudge_traces(request: pytest.FixtureRequest, sidejudge_tracer_provider: TracerProvider) -> CapturedTraces:
    """Captures the traces of this test, from here on."""
    _need_otel()
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415  # of an extra
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: PLC0415  # likewise

    # A provider takes processors and gives none back: one exporter each, emptied for every test.
    exporters = request.config.stash[_EXPORTERS]
    if id(sidejudge_tracer_provider) not in exporters:
        exporter = InMemorySpanExporter()
        sidejudge_tracer_provider.add_span_processor(SimpleSpanProcessor(exporter))
        exporters[id(sidejudge_tracer_provider)] = sidejudge_tracer_provider, exporter
    exporter = exporters[id(sidejudge_tracer_provider)][1]
    exporter.clear()
    named = str(request.config.getini(INI))
    captured = CapturedTraces(exporter, request.config.rootpath / named if named else None)
    request.node.stash[_ON] = captured
    return captured


@pytest.fixture(autouse=True)
def _sidejudge_marked(request: pytest.FixtureRequest) -> None:
    """Captures for a test with the mark, whether it asks for the traces or not."""
    if request.node.get_closest_marker(MARK) is not None:
        request.getfixturevalue("sidejudge_traces")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Judge the traces of a marked test once it has passed."""
    outcome = yield
    for mark in item.iter_markers(MARK):
        _judge(item, mark)
    return outcome


def _judge(item: pytest.Item, mark: pytest.Mark) -> None:
    rubric, *more = mark.args or (mark.kwargs.get("rubric"),)
    unknown = [each for each in mark.kwargs if each not in _ARGUMENTS]
    if rubric is None or more or unknown:
        what = f"knows no {unknown[0]!r}" if unknown else "names one rubric, or a list of them"
        pytest.fail(f"sidejudge: the mark {what}; it takes {', '.join(_ARGUMENTS)}", pytrace=False)
    config = mark.kwargs.get("config")
    given = {key: mark.kwargs[key] for key in _GIVEN if key in mark.kwargs}
    captured = item.stash.get(_ON, None)
    assert captured is not None, "the mark stands on what is no test function"
    try:
        captured.judge(rubric, config=item.config.rootpath / config if config else None, **given)
    except (SidejudgeError, ValueError) as error:
        refused = str(error)
    else:
        return
    pytest.fail(f"sidejudge: {refused}", pytrace=False)
