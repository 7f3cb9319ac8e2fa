"""Trace explanation: what happened to one trace and why, in sentences. Of an unknown one: its draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sidejudge.integrations.otlp.wire.tracestate import probability, random_bits, threshold
from sidejudge.integrations.store.contents import AnswerDocument, ExchangeDocument, JudgeCallDocument
from sidejudge.monitor.config import Config
from sidejudge.scoring.lexical.amount import amount, beside
from sidejudge.scoring.rubrics import SCENARIO_RUBRICS
from sidejudge.scoring.trace.time_units import iso_time
from sidejudge.scoring.verdict.documents import LateReferenceDocument, SamplingDocument, TraceDocument, VerdictDocument
from sidejudge.scoring.verdict.escalation import escalation_text

_REASONS = {
    "scored": "a rubric reached a verdict",
    "sampled_out": "it was not drawn for judging",
    "no_rubric": "no route selects it, so no rubric judged it",
    "not_a_run": "no model, agent or tool took part in it, so there is nothing to judge",
    "excluded": "it is never judged, as traffic of an evaluator or by a route without rubrics",
    "incomplete": "it was cut short, and what arrived does not answer what the rubrics ask",
    "unavailable": "rubrics ran, but what they need is missing",
    "no_content": "its telemetry carries no message contents",
    "judge_failed": "a judge was asked and failed, or could not be asked for too long",
    "over_budget": "its rubrics need a judge, and the budget of the judge did not reach for it",
    "shed": "it was given up under load, or no span of it fits the limits of a trace",
    "crashed": "the process ended again and again while it was being judged",
    "handed_over": "the process ended, and the monitor that drain.to names took it; ask that one",
    "late": "its spans came after its verdict was final; that stands",
    "deleted": "it was gone from Langfuse before it was read, or was forgotten before it was judged",
    "undecodable": "its bytes could not be read",
    "error": "judging it failed for a reason of sidejudge's own",
}
_IN_VAIN = {
    "gone": "Langfuse had nothing of the trace",
    "incomplete": "Langfuse had less of the trace than was judged",
    "too_large": "in Langfuse the trace is larger than is read",
    "unreadable": "Langfuse answered, but not for this trace",
    "other_rubrics": "as it is in Langfuse and in the configuration, other rubrics would judge it",
    "judge_failed": "a judge that is needed could not be asked, or failed",
    "error": "judging it failed for a reason of sidejudge's own",
    "forgotten": "the verdict had been let go for lack of room",
    "no_langfuse": "its spans are gone, and no Langfuse is configured to read them from",
}
_COMPLETIONS = {
    "root_ended": "its root span had ended and no parent was missing",
    "pseudo_root": "no span came any more, and only a caller in another process is missing",
    "idle": "no span came any more",
    "deadline": "it had been open for as long as is allowed",
    "pressure": "too many traces were open at once",
    "shutdown": "the monitor ended while it was open",
    "torn": "another monitor may hold spans of it, and did not answer",
    "batch": "it was recorded and whole",
}


def explanation(details: TraceDocument) -> Iterator[str]:
    """The explanation of a trace, line by line, from its arrival to its verdicts."""
    yield from happened(details)
    for verdict in details.get("verdicts", []) if details.get("reason") is not None else ():
        yield from _verdict(verdict)


def happened(details: TraceDocument) -> Iterator[str]:
    """The explanation without the verdicts: how the trace ended, and why."""
    kind = "session" if details.get("kind") == "session" else "trace"
    yield f"{kind} {details['trace_id']}" + (f" · {details['name']}" if details.get("name") else "")
    where = [f"{key} {details[key]}" for key in ("service", "environment", "session_id") if details.get(key)]
    if where:
        yield "  from " + ", ".join(where)
    if details.get("trace_url"):
        yield f"  {details['trace_url']}"
    if details.get("reason") is None:
        waits = {"judge": "it waits for the judge", "embeddings": "it waits for embeddings"}.get(
            details.get("waits_for", ""), "it is still open"
        )
        yield f"  {waits}: its spans are kept, and it will be judged" + (
            "" if details.get("waits_for") else " once it is whole"
        )
        return
    yield from _arrival(details)
    yield from _sampling(details.get("sampling"))
    if details.get("route"):
        yield f"  the route {details['route']!r} chose the rubrics {', '.join(details.get('rubrics', [])) or '-'}"
    reason = str(details["reason"])
    yield f"  it ended as {reason}: {_REASONS.get(reason, 'see the outcomes on the page')}" + _why(details)
    for route in details.get("routes") or ():
        yield f"  the route {route['route']!r} is for others: {route['unmet']} does not hold"


def _arrival(details: TraceDocument) -> Iterator[str]:
    if details.get("spans") is not None:
        dialects = ", ".join(details.get("dialects", []))
        yield f"  {amount(details['spans'], 'span')} arrived" + (f", in the dialect of {dialects}" if dialects else "")
    if details.get("kind") == "session":
        yield f"  it has {amount(details['turns'], 'turn')}, each a trace of its own"
    if details.get("session"):
        yield f"  it is a turn of the session {details['session']}"
    if details.get("damaged_chunks"):
        yield f"  {details['damaged_chunks']} of its parts could not be read"
    if details.get("missing_parents"):
        yield f"  {amount(details['missing_parents'], 'span')} with a parent that never came"
    if details.get("completion"):
        completion = str(details["completion"])
        at = f" at {iso_time(details['closed_ns'], 'seconds')}" if isinstance(details.get("closed_ns"), int) else ""
        yield f"  it was closed ({completion}){at}: {_COMPLETIONS.get(completion, 'for another reason')}"
    if int(details.get("revision") or 1) > 1:
        yield f"  {_revised(details)} made revision {details['revision']}"
    if details.get("belated"):
        yield f"  {_late_reference(details['belated'])}"
    if details.get("content_captured") is False:
        switch = details.get("capture_switch")
        yield (
            f"  contents were not captured; {switch} would capture them" if switch else "  no contents were read of it"
        )


def _revised(details: TraceDocument) -> str:
    if details.get("read_again_at"):
        return f"another reference, and its spans as Langfuse had them at {details['read_again_at']},"
    return "spans or a reference that came late"


def _late_reference(pending: LateReferenceDocument) -> str:
    known = "its reference is another by now than that of its verdict"
    why = _IN_VAIN.get(str(pending["reason"]), str(pending["reason"]))
    if pending["given_up"]:
        return f"{known}, which stands: {why}"
    if pending["reason"] is None:
        return f"{known}: it is to be judged again"
    return f"{known}; it is tried again at {pending['next_attempt']}, for the last time {why}"


def _sampling(sampling: SamplingDocument | None) -> Iterator[str]:
    if not sampling or (chance := sampling.get("probability")) is None:
        return
    if "threshold" in sampling:  # what is remembered of a trace that was not drawn
        randomness = sampling.get("randomness", "(by a secret key)")
        yield f"  its randomness {randomness} is below the base rate's threshold {sampling['threshold']}"
        return
    by = f" by the rule {sampling['rule']!r}" if sampling.get("rule") else ""
    selection = sampling.get("selection")
    if chance == 1:
        yield f"  it was drawn{by} ({selection}), as all are that are like it"
    else:
        yield f"  it was drawn{by} ({selection}) with probability {chance:g}, and so counts {1 / chance:g}-fold"
    if sampling.get("judged_share") is not None and float(sampling["judged_share"]) < 1.0:
        yield f"  the judge's budget reached for {float(sampling['judged_share']):.4g} of such traces"
    if sampling.get("over_budget"):
        yield f"  it was not among them, so these rubrics did not judge it: {', '.join(sampling['over_budget'])}"


def why(trace: TraceDocument) -> str:
    """Why a trace ended as it did, in one line: its own cause or its verdicts' reasons, else the reason's meaning."""
    unmet = "; ".join(f"{route['route']}: {route['unmet']} does not hold" for route in trace.get("routes") or ())
    failing = [each for each in trace.get("verdicts") or () if each.get("passed") is not True and each.get("reason")]
    judged = "; ".join(f"{each['rubric']}: {each['reason']}" for each in failing)
    own = trace.get("excluded") or trace.get("error") or unmet or judged
    return str(own) if own else _REASONS.get(str(trace.get("reason")), "")


def _why(details: TraceDocument) -> str:
    more = details.get("excluded") or details.get("error")
    return f" ({more})" if more else ""


def _verdict(verdict: VerdictDocument) -> Iterator[str]:
    outcome = {True: "passed", False: "failed", None: "neither passed nor failed"}[verdict.get("passed")]
    composite = verdict.get("composite")
    value = ", no composite" if composite is None else f", composite {beside(composite, verdict.get('pass_mark'))}"
    mark = f" (pass mark {verdict['pass_mark']:g})" if verdict.get("pass_mark") is not None else ""
    yield f"  {verdict['rubric']}: {outcome}{value}{mark}, {verdict.get('state')}"
    if verdict.get("reason"):
        yield f"    because {verdict['reason']}"
    if climbed := escalation_text(verdict.get("cascade")):
        yield f"    {climbed}"
    for score in verdict.get("scores", []):
        number = score.get("value")
        shown = f"{number:.3f}" if isinstance(number, int | float) else str(score.get("status"))
        rating = f" {score['rating']}" if score.get("rating") else ""
        reason = f": {score['reason']}" if score.get("reason") else ""
        yield f"    {score['metric']} {shown}{rating}, weight {score.get('weight', 0):g}{reason}"
        if verdict["rubric"] in SCENARIO_RUBRICS and "unexpected: " in reason:
            yield "      the scenario excludes it, or does not name it where it is closed ('closed: false' opens it)"


JUDGE_CALLS_OFF: Final = (
    "calls to judges are not kept: they hold contents of traces; set evaluators.judge.keep_calls_bytes (such as 64MiB) "
    "and restart, and calls from then on are kept for evaluators.judge.keep_calls"
)


def judge_explanation(calls: Sequence[JudgeCallDocument], metric: str | None = None) -> Iterator[str]:
    """Calls to judges, line by line: what was asked, sent, answered, read and paid.

    Args:
        calls: as they are kept.
        metric: only calls with a question of this metric.
    """
    for call in calls:
        questions = call.get("questions") or ()
        if metric is not None and not any(metric in (q["metric"], q["metric"].partition("-")[0]) for q in questions):
            continue
        usd = call.get("cost_usd")
        yield f"call {call['call']} at {call['at']}, {'cost not known' if usd is None else f'${usd:.6f}'}"
        for message in call.get("messages") or ():
            yield f"  {message['role']}:"
            yield from (f"    {line}" for line in message["content"].splitlines())
        for each in call.get("exchanges") or ():
            yield from _exchange(each)
        for question in questions:
            yield from _question(question)


def _exchange(each: ExchangeDocument) -> Iterator[str]:
    if each.get("complaint"):
        yield "  asked again, with the parser's complaint:"
        yield from (f"    {line}" for line in str(each["complaint"]).splitlines())
    if each.get("failure"):
        yield f"  {each['model']} gave no answer: {each['failure']}"
        return
    tokens = f"{each['input_tokens']} + {each['output_tokens']} tokens"
    ended = f", ended with {each['finish_reason']}" if each.get("finish_reason") else ""
    yield f"  {each['model']} answered ({tokens}, {float(each['duration_s']):.2f} s{ended}):"
    yield from (f"    {line}" for line in str(each["text"]).splitlines())
    yield from (f"  refused by the parser: {fault}" for fault in each.get("faults") or ())


def _question(question: AnswerDocument) -> Iterator[str]:
    if question.get("steps_shown"):
        left = question.get("steps_not_shown") or "none"
        yield f"  {question['id']} {question['metric']}: steps in full: {question['steps_shown']}; in outline: {left}"
    if question.get("fault"):
        yield f"  {question['id']} {question['metric']}: no answer: {question['fault']}"
        return
    flags = f" [{'; '.join(question['flags'])}]" if question.get("flags") else ""
    yield f"  {question['id']} {question['metric']}: {question['value']}{flags}: {question['reason']}"
    for model, vote in (question.get("votes") or {}).items():
        yield f"    {model} voted {vote}"


def sampling_forecast(trace_id: str, config: Config) -> Iterator[str]:
    """Whether the base rate of a configuration draws a trace id; nothing else is known of the trace."""
    sampling = config.sampling
    if sampling.rate is None and not sampling.rules and config.sessions is None:
        yield f"  without sampling.rate every trace is drawn up to {sampling.traces_per_hour} an hour, then a share"
        return
    bits, limit = random_bits(bytes.fromhex(trace_id), sampling.hash_key), threshold(sampling.fixed_rate)
    kept = bits >= limit
    yield f"  its randomness is {bits:#016x}"
    yield f"  the threshold of the base rate {sampling.fixed_rate:g} is {limit:#016x}"
    if kept:
        yield f"  that is enough: it would be drawn, with probability {probability(limit):g}, whatever the rules are"
    else:
        yield "  that is less: the base rate does not draw it"
        for rule in config.sampling.rules:
            drawn = bits >= threshold(rule.rate)
            verb = "would draw it" if drawn else "would not draw it either"
            yield f"  the rule {rule.name!r} (rate {rule.rate:g}) {verb} if it matches: {rule.match.describe()}"
