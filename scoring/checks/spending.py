"""Checks of a case's effort: time, money, tokens, steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.amount import apart
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Kind, Reason, ReasonPart, decided_number, own, part, together
from sidejudge.scoring.result.result import Result, Scored, Unavailable
from sidejudge.scoring.trace.span import Json, SpanKind

from .check import CaseTest, Check, CheckError, Subject, keys, milliseconds, number, texts, whole

_STEPS: Final = frozenset({SpanKind.LLM, SpanKind.TOOL, SpanKind.RETRIEVER})

_NO_REASON: Final = Unavailable(Reason("no model call says why it stopped"))


def limited(value: float | None, most: float, unknown: Unavailable, stated: Callable[[float], Reason]) -> Result:
    """1 where a value is at most its limit; ``stated`` reports it."""
    if value is None:
        return unknown
    return Scored(value=float(value <= most), reason=stated(value))


def _latency(value: Json) -> CaseTest:
    most = milliseconds(value)
    unknown = Unavailable(Reason("the latency is not known"))

    def stated(n: float) -> Reason:
        return Reason("{n} ms, at most {most:.15g} ms", n=decided_number(n, lambda each: each <= most, 0), most=most)

    return lambda case: limited(case.latency_e2e_ms, most, unknown, stated)


def _cost(value: Json) -> CaseTest:
    most = number(value)
    unknown = Unavailable(Reason("the cost is not known"))

    def stated(n: float) -> Reason:
        least, over = apart(most, n) if n > most else (f"{most:.6g}", f"{n:.6g}")
        return Reason("${n}, at most ${most}", n=ReasonPart(Kind.NUMBER, over), most=ReasonPart(Kind.NUMBER, least))

    return lambda case: limited(case.cost_usd, most, unknown, stated)


def _tokens(value: Json) -> CaseTest:
    names = ("input", "output", "total")
    given = keys(value, names, short="total")
    if not given:
        raise CheckError(f"must be a number, or a map with {', '.join(names)}")
    limits = [(name, whole(most, name)) for name, most in given.items()]
    unknown = Unavailable(Reason("the number of tokens is not known"))

    def test(case: Case) -> Result:
        if case.input_tokens is None or case.output_tokens is None:
            return unknown
        used = {"input": case.input_tokens, "output": case.output_tokens}
        used["total"] = used["input"] + used["output"]
        over = [
            Reason("{n} {kind} tokens, at most {most}", n=used[name], kind=own(name), most=most)
            for name, most in limits
            if used[name] > most
        ]
        return Scored(value=float(not over), reason=together(over) or Reason("{n} tokens", n=used["total"]))

    return test


def _max_steps(value: Json) -> CaseTest:
    most = whole(value)
    unknown = Unavailable(Reason("the steps are not known"))

    def test(case: Case) -> Result:
        if case.trace is not None:
            steps = sum(span.kind in _STEPS for span in case.trace.spans)
        elif case.tools_used is not None:
            steps = len(case.tools_used)
        else:
            return unknown
        if steps <= most and not case.complete:
            return Unavailable(Reason("the trace is incomplete: there may have been more steps"))
        return limited(steps, most, unknown, lambda n: Reason("{n:.0f} steps, at most {most:.0f}", n=n, most=most))

    return test


def _finish_reason(value: Json) -> CaseTest:
    wanted = texts(value)

    def test(case: Case) -> Result:
        calls = case.trace.models if case.trace is not None else ()
        stopped = [span for span in calls if span.finish_reason is not None]
        if not stopped:
            return _NO_REASON
        last = max(stopped, key=lambda span: span.end_ns).finish_reason
        return Scored(value=float(last in wanted), reason=Reason("stopped by {why}", why=part(label(str(last), 40))))

    return test


_check = partial(Check, subject=Subject.CASE)
CHECKS: Final = (
    _check("latency", "Latency", "the case took at most this long, from its first to its last moment",
           "a duration with its unit (800ms, 3s)", _latency, undefined="the latency is not known"),
    _check("cost", "Cost", "the case cost at most this many US dollars", "a number of US dollars", _cost,
           undefined="the cost is not known"),
    _check("tokens", "Tokens", "its model calls took at most so many tokens", "a number, or {input, output, total}",
           _tokens, undefined="the tokens are not known"),
    _check("max-steps", "Steps", "it took at most so many steps: calls of models, tools and retrievers (of a case "
           "without spans: of tools)", "a whole number", _max_steps,
           undefined="neither spans nor tools are known, or the trace is incomplete and within the limit"),
    _check("finish-reason", "Why the model stopped", "the last model call stopped for this reason (or one of these): "
           "stop, length, tool_calls, content_filter, error, else as it was sent", "a text, or several", _finish_reason,
           undefined="no model call of the case says why it stopped"),
)  # fmt: skip
"""The checks of effort."""
