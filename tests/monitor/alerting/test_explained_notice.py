"""A whole monitor sends a notice that names the tenant in which the failures are, bounded and escaped."""

from __future__ import annotations

import pytest

from tests.fakes.receiver import receiving
from tests.otlp_requests import LOW, S, request, span, trace
from tests.waiting import until

SCENARIO = {
    "routes": [{"rubrics": ["workflow"], "scenario": "tidy"}],
    "scenarios": {"tidy": {"tools_should_exclude": ["drop_table"], "closed": False}},
}
HOSTILE = "<img src=x onerror=alert(1)>\u202e" + "acme" * 40


def run(number: int, tenant: str, *, fails: bool) -> list[S]:
    """A run of an agent with a tool, of a tenant, under a new version where it fails."""
    own = {"langfuse.trace.metadata.tenant": tenant, "langfuse.release": "2.3.1" if fails else "2.3.0"}
    name = "drop_table" if fails else "read_table"
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return [
        S(trace_id=trace(number, LOW), span_id=span(1), attributes={"gen_ai.operation.name": "invoke_agent", **own}),
        S(trace_id=trace(number, LOW), span_id=span(2), parent_id=span(1), attributes=tool),
    ]


@pytest.mark.parametrize("names", [True, False])
async def test_a_notice_names_the_tenant_and_the_version_in_which_the_failures_are(started, names):
    with receiving() as hook:
        app = await started(
            **SCENARIO,
            alerts={
                "mode": "bound", "look": "1s", "min_samples": 30, "slices": ["version", "metadata.tenant"],
                "hysteresis": {"needed": 1, "looks": 1, "hold": "0s"},
                "notify": [{"webhook": {"url": hook.url, "severity": "warning", "names": names}}],
            },
        )  # fmt: skip
        runs = [run(n, HOSTILE if n % 3 else f"t{n % 4}", fails=bool(n % 3)) for n in range(1, 151)]
        await app.post(request([each for of in runs for each in of]))
        await app.settled(150)
        await until(lambda: any(alert["explained"] for got in hook.taken for alert in got.json["alerts"]), 120)
        body = next(got.json for got in hook.taken if got.json["alerts"][0]["explained"])
        known = body["alerts"][0]["explained"]
        failures, n = known["now"]["failures"], known["now"]["n"]
        assert 30 <= failures < n <= 150  # since the drop began, which the change detector finds within the batch
        alert = body["alerts"][0]
        counted = f": {alert['failures']} of {alert['n']} fail workflow within 1 hour; it began about "
        assert counted in body["title"]
        assert "\u202e" not in body["text"]
        if not names:
            assert not any(name in got.body.decode() for got in hook.taken for name in ("acme", "drop_table", "2.3.1"))
            assert known["slices"] == known["new"] == []
            return
        by = {each["by"]: each for each in known["slices"]}
        tenant, version = by["metadata.tenant"], by["version"]
        assert (tenant["pass_ratio"], tenant["n"], tenant["others"], tenant["share"]) == (0.0, failures, 1.0, 1.0)
        assert len(tenant["value"]) <= 61
        assert version["value"] == "2.3.1"
        assert f"Where: version 2.3.1: 0.00 pass (n = {failures}); others 1.00 (n = {n - failures})." in body["text"]


def call(number: int, *, fails: bool) -> list[S]:
    """A run of an agent that calls two tools, one of which may fail."""
    ids = {"trace_id": trace(number, LOW)}
    agent = S(**ids, span_id=span(1), attributes={
        "gen_ai.operation.name": "invoke_agent", "input.value": "Refund it.", "output.value": "It is done.",
    })  # fmt: skip
    tools = []
    for n, name in ((2, "look_up"), (3, "refund")):
        ending = {"error.type": "TimeoutError"} if fails and name == "refund" else {"gen_ai.tool.call.result": "found"}
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.arguments": "{}"}
        tools.append(S(**ids, span_id=span(n), parent_id=span(1), attributes=tool | ending))
    return [agent, *tools]


async def test_a_notice_names_the_tool_that_fails(started):
    with receiving() as hook:
        app = await started(
            routes=[{"rubrics": ["run_health"]}],
            alerts={
                "mode": "bound", "look": "1s", "min_samples": 30, "hysteresis": {"needed": 1, "looks": 1, "hold": "0s"},
                "notify": [{"webhook": {"url": hook.url, "severity": "warning"}}],
            },
        )  # fmt: skip
        await app.post(request([each for n in range(1, 151) for each in call(n, fails=bool(n % 3))]))
        await app.settled(150)
        await until(lambda: any(alert["explained"] for got in hook.taken for alert in got.json["alerts"]), 120)
        known = next(got.json for got in hook.taken if got.json["alerts"][0]["explained"])["alerts"][0]["explained"]
        tool, *_ = known["causes"]
        assert (tool["by"], tool["value"], tool["count"]) == ("tool", "refund", known["now"]["failures"])
