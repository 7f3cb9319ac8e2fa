"""A monitor with a real embedding model in its process: traces are scored by it, and nothing is embedded twice."""

from __future__ import annotations

from tests.otlp_requests import HIGH, S, request, span, trace


def requested(number: int) -> bytes:
    stated = {
        "langfuse.observation.input": "Refund verified customer?",
        "langfuse.observation.output": "Customer refunded, account confirmed.",
        "langfuse.trace.metadata.expected_outcome": "Kunde Erstattung, konto geprüft.",
    }
    return request([S(trace_id=trace(number, HIGH), span_id=span(1), name="step", attributes=stated)])


def counted(monitor) -> dict[str, float]:
    lines = monitor.http.get(monitor.api + "/metrics").text.splitlines()
    reported = (line.rpartition(" ") for line in lines if line.startswith("sidejudge_embedding_"))
    return {name.removeprefix("sidejudge_embedding_"): float(value) for name, _, value in reported}


def test_traces_are_scored_by_the_model_and_each_text_is_embedded_once_even_across_a_restart(serving, embedding_model):
    monitor = serving(
        routes=[{"rubrics": ["benchmarks"]}], evaluators={"embedding": {"model": str(embedding_model), "device": "cpu"}}
    )
    monitor.post(requested(1))
    monitor.settled(1)
    (verdict,) = monitor.verdicts()
    scores = {score["metric"]: score for score in verdict["scores"]}
    for name in ("answer_relevancy", "answer_correctness"):
        assert (scores[name]["status"], scores[name]["method"]) == ("scored", "embedding")
    first = counted(monitor)
    assert first["texts_total"] == 3
    assert first["texts_failed_total"] == 0

    assert monitor.stop() == 0
    monitor.start()
    monitor.post(requested(2))
    monitor.settled(1)
    again = counted(monitor)
    assert again["texts_total"] == 0
    assert again["cache_hits_total"] >= 3
    assert again["cache_misses_total"] == 0
    assert len({str(v["scores"]) for v in monitor.verdicts()}) == 1
