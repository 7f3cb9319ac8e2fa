"""What other libraries take for the same keyword lists: CPU seconds a case, as JSON on the last line.

Run by ``bench_scoring.py`` with a Python that has deepeval and ragas; reads pairs of (expected, found) from standard
input. Neither library has F1 of keyword lists as such, so each is given its nearest: the lists as tool calls.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "RAGAS_DO_NOT_TRACK": "true", "OPENAI_API_KEY": "none"}


def deepeval(pairs: list[tuple[list[str], list[str]]]) -> None:
    from deepeval.metrics import ToolCorrectnessMetric  # noqa: PLC0415  # each peer is imported for its own lap
    from deepeval.test_case import LLMTestCase, ToolCall  # noqa: PLC0415  # likewise

    metric = ToolCorrectnessMetric(async_mode=False)
    for expected, found in pairs:
        case = LLMTestCase(
            input="", actual_output="",
            tools_called=[ToolCall(name=name) for name in found],
            expected_tools=[ToolCall(name=name) for name in expected],
        )  # fmt: skip
        metric.measure(case, _show_indicator=False)


def ragas(pairs: list[tuple[list[str], list[str]]]) -> None:
    from ragas.dataset_schema import MultiTurnSample  # noqa: PLC0415  # likewise
    from ragas.messages import AIMessage, ToolCall  # noqa: PLC0415  # likewise
    from ragas.metrics import ToolCallF1  # noqa: PLC0415  # likewise

    async def all_of_them() -> None:
        metric = ToolCallF1()
        for expected, found in pairs:
            sample = MultiTurnSample(
                user_input=[AIMessage(content="", tool_calls=[ToolCall(name=name, args={}) for name in found])],
                reference_tool_calls=[ToolCall(name=name, args={}) for name in expected],
            )
            await metric.multi_turn_ascore(sample)

    asyncio.run(all_of_them())


def main() -> None:
    pairs = [tuple(pair) for pair in json.load(sys.stdin)]
    taken = {}
    for name, work in (("deepeval, ToolCorrectness", deepeval), ("ragas, ToolCallF1", ragas)):
        work(pairs[:10])
        start = time.process_time()
        work(pairs)
        taken[name] = (time.process_time() - start) / len(pairs)
    sys.stdout.write(json.dumps(taken) + "\n")


if __name__ == "__main__":
    main()
