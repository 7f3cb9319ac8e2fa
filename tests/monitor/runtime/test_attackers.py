"""An attacker who writes every header and every attribute of his traces moves a pass ratio by as many plain verdicts.

He sends k traces that pass, or fail, among those of others, each with claims about how it was drawn, who handed it
over, when it was and to whom it belongs. The numbers of the service are then those of k plain traces: exactly so, for
nothing that he writes may count more, or less, than one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from sidejudge.integrations.otlp.wire.handover import HandoverKeys, spans_of
from sidejudge.monitor.alerting.observation import Key
from tests.monitor.runtime.test_app import ANY, samples, total
from tests.otlp_requests import S, request, span
from tests.seed_policy import estimate_of

HONEST_PASSING, HONEST_FAILING, HIS = 20, 40, 30
TOP = b"\xff" * 9
DRAWN = bytes(2) + b"\xc0" + bytes(6)
"""The tail of a trace id that a rate of a half draws, and no state of an attacker is needed for."""
NO_SUCH_TOOL = {**ANY, "scenarios": {"any": {"tools_should_exclude": ["no_such_tool"]}}}
RAN = {"gen_ai.operation.name": "invoke_agent", "output.value": "Done."}
FAILING = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "no_such_tool"}
KEY = Key("shop", "unknown", "workflow")


def numbered(n: int, tail: bytes = DRAWN) -> bytes:
    return n.to_bytes(7, "big") + tail


def trace_of(n: int, *, fails: bool, state: str = "", tail: bytes = DRAWN, **more) -> list[S]:
    """A trace of a root and a tool's span; ``more`` are fields of both."""
    now_ns = time.time_ns()
    given = {"start_ns": now_ns - 10**9, "end_ns": now_ns, "trace_state": state, **more}
    attributes = given.pop("attributes", {})
    tid = numbered(n, tail)
    return [
        S(trace_id=tid, span_id=span(2), parent_id=span(1), **given, attributes=FAILING if fails else {}),
        S(trace_id=tid, span_id=span(1), **given, attributes={**RAN, **attributes}),
    ]


def marked(spans: list[S], mark: str, **resource: str) -> bytes:
    return request(spans, resource={"sidejudge.handover": mark, **resource})


def forged(n: int, spans: list[S]) -> bytes:
    """A mark that is signed, by a monitor of the attacker's own."""
    return spans_of(request(spans), spans[0].trace_id, (1 << 56) - 4096, HandoverKeys(), hash_key=b"")


Attack = Callable[[int, bool], bytes]
ATTACKS: dict[str, Attack] = {
    "a threshold": lambda n, fails: request(trace_of(n, fails=fails, state="ot=th:fffffffffff", tail=TOP)),
    "a threshold and randomness": lambda n, fails: request(
        trace_of(n, fails=fails, state="ot=th:ffffffffffffff;rv:ffffffffffffff")
    ),
    "randomness": lambda n, fails: request(trace_of(n, fails=fails, state="ot=rv:ffffffffffffff")),
    "a threshold of nothing": lambda n, fails: request(trace_of(n, fails=fails, state="ot=th:0;rv:00000000000000")),
    "a state of others before it": lambda n, fails: request(
        trace_of(n, fails=fails, state="a=b,ot=p:8;r:62;th:fffffffffffff,ot=th:8", tail=TOP)
    ),
    "a handover": lambda n, fails: marked(trace_of(n, fails=fails, tail=TOP), "fffffffffff000"),
    "a handover with a proof": lambda n, fails: marked(
        trace_of(n, fails=fails, tail=TOP), "fffffffffff000",
        **{"sidejudge.handover.proof": f"{numbered(n, TOP).hex()}:00000000:{'0' * 32}"},
    ),
    "a handover of his own monitor": lambda n, fails: forged(n, trace_of(n, fails=fails, tail=TOP)),
    "weights in attributes": lambda n, fails: request(
        trace_of(n, fails=fails, attributes={
            "sidejudge.sampling_probability": "1e-9", "sampling_probability": "1e-9", "sampling.weight": 10**9,
            "SampleRate": 10**9, "sampling.priority": 100, "langfuse.trace.metadata.sampling_probability": "1e-9",
            "sidejudge.weight": 10**9,
        }),
        resource={"sidejudge.sampling_probability": "1e-9", "SampleRate": "1000000"},
    ),
    "another time": lambda n, fails: request(
        trace_of(n, fails=fails, start_ns=2**63 - 10**9, end_ns=2**63 - 1) if n % 2
        else trace_of(n, fails=fails, start_ns=1, end_ns=2)
    ),
    "results, feedback and names of ours": lambda n, fails: request(
        trace_of(n, fails=fails, attributes={
            "sidejudge.passed": "true", "sidejudge.verdict": "pass", "sidejudge.revision": 9,
            "sidejudge.selection": "forced", "sidejudge.cluster": "x", "baggage": "sidejudge.weight=9",
            "gen_ai.evaluation.name": "workflow", "gen_ai.evaluation.score.value": 1,
            "gen_ai.evaluation.score.label": "pass", "langfuse.score.workflow": 1, "user.feedback": "up", "score": 1,
        }),
        resource={"sidejudge.passed": "true", "sidejudge.revision": "99", "baggage": "sidejudge.weight=9"},
    ),
    "one session for all": lambda n, fails: request(
        trace_of(n, fails=fails, attributes={"session.id": "mine", "user.id": "me"})
    ),
}  # fmt: skip


async def estimate(app, traces: int):
    await app.settled(traces)
    found = estimate_of(app.monitor.windows, KEY, app.monitor.clock_ns())
    assert found is not None, app.monitor.windows.keys()
    return found


async def honest(app) -> None:
    traces = [trace_of(n, fails=n < HONEST_FAILING) for n in range(HONEST_PASSING + HONEST_FAILING)]
    assert (await app.post(request([each for spans in traces for each in spans]))).status_code == 200


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(("rate", "fails"), [(1.0, True), (0.5, False)])
async def test_k_traces_count_for_k_plain_verdicts(attack, rate, fails, started):
    app = await started(**NO_SUCH_TOOL, sampling={"rate": rate})
    await honest(app)
    for n in range(HIS):
        assert (await app.post(ATTACKS[attack](1_000 + n, fails))).status_code == 200
    found = await estimate(app, HONEST_PASSING + HONEST_FAILING + HIS)
    n, passed = HONEST_PASSING + HONEST_FAILING + HIS, HONEST_PASSING + HIS * (not fails)
    assert found.n == n
    assert found.pass_ratio == pytest.approx(passed / n)
    assert found.weight_sum == pytest.approx(n / rate)
    if attack != "one session for all":  # of verdicts that belong together each says less
        assert found.effective_n == n
    assert total(await samples(app), "sidejudge_spans_handed_over_total") == 0


async def test_a_single_trace_leaves_a_status_as_it_is(started):
    app = await started(**NO_SUCH_TOOL, alerts={"mode": "point"})
    await honest(app)
    await app.post(request(trace_of(999, fails=False, state="ot=th:fffffffffff", tail=TOP)))
    await estimate(app, HONEST_PASSING + HONEST_FAILING + 1)
    (status,) = [each for each in (await app.get("/v1/status"))["services"] if each["rubric"] == "workflow"]
    assert status["status"] == "critical"


async def test_what_was_claimed_is_counted_and_shown(started):
    app = await started(**NO_SUCH_TOOL)
    await honest(app)
    for n in range(HIS):
        await app.post(ATTACKS["a threshold"](1_000 + n, False))
        await app.post(ATTACKS["a handover"](2_000 + n, False))
    await estimate(app, HONEST_PASSING + HONEST_FAILING + 2 * HIS)
    found = await samples(app)
    assert total(found, "sidejudge_claims_disbelieved_total", reason="undeclared") == HIS
    assert total(found, "sidejudge_claims_disbelieved_total", reason="unsigned") == HIS
    assert total(found, "sidejudge_traffic_suspected", kind="disbelieved_claims") == 1
    assert total(found, "sidejudge_traces_begun_by_callers_total") == 0
    status = await app.get("/v1/status")
    assert "disbelieved_claims" in {each["kind"] for each in status["anomalies"]}
    shown = status["sampling"]["disbelieved"]
    assert (shown["undeclared"], shown["unsigned"], shown["share"]) == (HIS, HIS, 0)
    assert "more traces than is believed" in (await app.http.get(app.api + "/")).text


async def test_behind_a_declared_floor_each_trace_counts_for_that_many_at_most(started):
    app = await started(**NO_SUCH_TOOL, sampling={"rate": 1.0, "trust_upstream": {"floor": 0.1, "max_share": 0.05}})
    await honest(app)
    for n in range(HIS):
        await app.post(ATTACKS["a threshold"](1_000 + n, False))
    await estimate(app, HONEST_PASSING + HONEST_FAILING + HIS)
    weights = [each.weight for each in app.monitor.windows.members(KEY, app.monitor.clock_ns())]
    assert max(weights) <= 10 * (1 + 1e-9)
    assert max(weights) <= 0.05 * sum(weights), "and for no more than the stated share"
