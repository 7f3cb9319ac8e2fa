"""What a listing leaves out the sampler would leave out too: whatever the rules, whatever the trace."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.langfuse.observations import Row
from sidejudge.monitor.config import Config
from sidejudge.monitor.ingest.langfuse.listed_trace import ListedTrace, grouped, left_out_at_once, left_out_once_settled
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.ingest.sampler import Sampler
from sidejudge.scoring.case.extract import extract
from tests.rows import trace_of

MATCHES: list[dict[str, Any]] = [
    {"name": "a*"}, {"tags": ["vip"]}, {"level": "error"}, {"environment": "staging"}, {"feedback": "negative"},
    {"metadata": {"k": "v"}}, {"service": "shop"}, {"task": "qa"}, {"latency_ms": ">1"},
    {"name": "b*", "level": "error"}, {"tags": ["vip"], "metadata": {"k": "v"}},
]  # fmt: skip
RATES = st.sampled_from([1e-9, 0.01, 0.3, 0.7, 1.0])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["a1", "b1"]), "traceName": st.sampled_from(["", "a2", "b2"]),
            "tags": st.sampled_from([[], ["vip"], ["other"]]), "level": st.sampled_from(["DEFAULT", "ERROR"]),
            "environment": st.sampled_from(["staging", "alpha"]),
            "metadata": st.sampled_from(
                [{}, {"k": "v"}, {"feedback": "bad"}, {"task": "qa"}, {"resourceAttributes.service.name": "shop"}]
            ),
        }
    ),
    min_size=1, max_size=4,
)  # fmt: skip


def reported(rows: list[dict[str, Any]], trace_id: str) -> list[Row]:
    common = {"traceId": trace_id, "startTime": "2026-11-21T00:00:00.000Z", "endTime": "2026-11-21T00:00:01.000Z"}
    return [
        {**row, **common, "id": f"{n + 1:016x}", "parentObservationId": f"{1:016x}" if n else "", "type": "SPAN"}
        for n, row in enumerate(rows)
    ]


@given(
    rows=ROWS, bits=st.integers(0, (1 << 128) - 1).filter(bool), base=RATES,
    rules=st.lists(st.tuples(st.sampled_from(MATCHES), RATES), max_size=3),
    randomness=st.sampled_from(["trace_id", "hashed"]),
)  # fmt: skip
def test_nothing_is_left_out_that_the_sampler_would_keep(rows, bits, base, rules, randomness):
    named = [{"name": f"r{n}", "match": match, "rate": rate} for n, (match, rate) in enumerate(rules)]
    sampler = Sampler(
        Config.model_validate({"sampling": {"rate": base, "rules": named, "randomness": randomness}}).sampling
    )
    trace_id = f"{bits:032x}"
    whole = reported(rows, trace_id)
    if not rows[0]["traceName"]:
        whole = [{**row, "traceName": ""} for row in whole]  # which of them names a trace whose root does not is open
    trace = trace_of(whole, "root_ended")
    assert trace is not None
    kept = sampler.decide(extract(trace), sampler.admission, bytes.fromhex(trace_id)).kept
    listed = ListedTrace.of(trace_id, 0)
    listed.add([{key: value for key, value in row.items() if key != "metadata"} for row in whole], 0)
    refused = left_out_at_once(sampler, bytes.fromhex(trace_id), listed) or left_out_once_settled(
        sampler, bytes.fromhex(trace_id), listed
    )
    assert refused in (None, EndReason.SAMPLED_OUT)
    if kept:
        assert refused is None


def test_rows_without_a_trace_belong_to_none_and_endless_ids_are_cut():
    found = grouped([{"id": "a"}, {"traceId": ""}, {"traceId": 3}, {"traceId": "x" * 10_000}, {"traceId": "t"}])
    assert sorted(map(len, found)) == [1, 800]
