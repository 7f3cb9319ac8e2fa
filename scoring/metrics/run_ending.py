"""How a run ended: in an error, without an answer, or with a text that is no answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial, wraps
from itertools import islice
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import shows, shows_text, written_beside_a_call
from sidejudge.scoring.case.grounds import headless, incomplete
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.metrics.metric import metric, pass_or_fail
from sidejudge.scoring.result.reason import Reason, own, part
from sidejudge.scoring.result.result import Method, NotApplicable, Result, Scored, Unavailable
from sidejudge.scoring.trace.span import Span, SpanKind
from sidejudge.scoring.trace.tool_calls import asks_for_tools, demanded_form
from sidejudge.scoring.trace.trace import Trace, from_above, speaking

from .answer_failure import answer_failure, is_refusal, sole_text
from .run_steps import CallStep, acts, failure_part, is_lone_call, run_steps, signs, stated_cause

SOURCE: Final = "sidejudge: run health"
run_metric: Final = partial(metric, source=SOURCE)
"""Makes a metric of runs without a reference of its function."""
UNKNOWN_RUN: Final = Unavailable(Reason("the case is not a trace, and states neither tools_used nor agents_called"))
LONE_CALL: Final = NotApplicable(Reason("the trace is one call of a tool; the run that called it is not in it"))
NO_RUN: Final = NotApplicable(Reason("the trace has no model, agent or tool span"))
NOT_A_TRACE: Final = NotApplicable(Reason("the case is not a trace"))
NO_CALLS: Final = NotApplicable(Reason("no tool was called"))
UNKNOWN_CALLS: Final = Unavailable(Reason("which tools were called is not known: contents were not captured"))
_ASKED_LAST: Final = Reason("the last model call asked for a tool, and no answer follows: the run may go on elsewhere")
_GOES_ON: Final = NotApplicable(_ASKED_LAST)
_WAITS: Final = Unavailable(_ASKED_LAST)
_BESIDE_A_CALL: Final = Unavailable(
    Reason("the last model call asked for a tool, and no step states an answer: what it wrote beside may be none")
)
_ENDED_BY_A_CALL: Final = Unavailable(
    Reason("the run ended behind a call of a tool, without a text: its steps may be used up, or the call its answer")
)
_NOT_RECORDED: Final = Unavailable(
    Reason("no step that may answer failed, and what the last of them returned was not captured")
)
_NO_TRACE: Final = Unavailable(
    Reason("the case states no answer, and without its trace it is not known whether the run gave one")
)
_NO_WORDS: Final = NotApplicable(Reason("there is no answer in words"))
_NO_ANSWER: Final = NotApplicable(Reason("nothing in the trace gives an answer"))
_OK: Final = Scored(value=1.0)
_ITS_ERROR: Final = Reason("the answer is the error of the last model call")
_LEAST_MESSAGE: Final = 12
"""Fewest characters of an answer that is looked for in an error: a word may stand in it by chance."""
_QUOTED: Final = re.compile(
    r"(?i)(?:\b|_)(?:generated|outputs?|responses?|completions?|answers?|texts?|contents?|value|pars(?:e|ed|ing)|got|received)"
    r"\b[\W_]*$"
)
"""What stands before a text that a model wrote in an error that rejects it: ``Could not parse LLM output: …``."""
_MOST_BEFORE: Final = 50
"""Characters before the text that are looked at."""
_MOST_WRAPPERS: Final = 10
_MOST_ABOVE: Final = 50
"""How many steps above the last model call are looked at."""
_OWN_STEPS: Final = frozenset({SpanKind.CHAIN, SpanKind.OTHER})
"""Steps of an agent itself. From what it calls, a tool or another agent, it goes on where that failed."""
_NOT_FATAL: Final = "(non-fatal)"
"""In what OpenAI's agents state of a tool's error that goes to the model and ends no run."""
_CANCELLED: Final = re.compile(r"(?:\w+\.)*Cancell?ed")
"""Beginning of an error that means that the caller left."""
_CUT_OFF: Final = {
    "length": Reason("the answer was cut off at the token limit"),
    "content_filter": Reason("a content filter stopped it"),
}


def top(trace: Trace) -> Span | None:
    """The step that speaks for the run: the topmost agent, else the root; None without spans.

    An agent's span that states nothing, not even a name, only wraps those right below it; the last of them speaks.
    """
    found = next((span for span in trace.from_top if span.kind is SpanKind.AGENT), None)
    if found is None:
        return trace.run_root
    for _ in range(_MOST_WRAPPERS):
        below = [span for span in trace.children.get(found.span_id, ()) if span.kind is SpanKind.AGENT]
        if not below or found.agent or found.error or shows(found.input) or shows(found.output):
            break
        found = below[-1]
    return found


def no_run(case: Case) -> NotApplicable | Unavailable | None:
    """Why there is no run to judge; None where there is one."""
    if case.trace is None:
        if case.tools_used is None and case.agents_called is None:
            return UNKNOWN_RUN
        return NO_RUN if case.completion is not None and not (acts(case) or _shows_more(case)) else None
    if case.once(is_lone_call):
        return LONE_CALL
    return None if acts(case) else NO_RUN


def _shows_more(case: Case) -> bool:
    """Whether a trace that is left as its case shows more than its times and its error: plain HTTP does not."""
    shown = (case.input, case.model_output, case.context, case.model, case.latency_model_ms, case.input_tokens)
    return any(value is not None for value in shown)


def of_run(measure: Callable[[Case], Result]) -> Callable[[Case], Result]:
    """The measure of a run; not applicable, with the reason, to a case without one."""

    @wraps(measure)
    def measured(case: Case) -> Result:
        gap = case.once(no_run)
        return measure(case) if gap is None else gap

    return measured


def of_trace(measure: Callable[[Case, Trace], Result]) -> Callable[[Case], Result]:
    """The measure of a run by its trace; not applicable to a case without a run."""

    @wraps(measure)
    def measured(case: Case) -> Result:
        return NOT_A_TRACE if case.trace is None else measure(case, case.trace)

    return of_run(measured)


@run_metric(
    pass_or_fail,
    formula="0 if the root, the topmost agent, an agent's last step, or the task of a queue that made the last model "
    "call after the root had ended, ended in an error, or the run timed out, else 1",
    undefined="a case without a trace states both an answer and an error that is no tool's (without an answer "
    "the error is the run's: 0); not applicable where no model, agent or tool took part",
)
@of_run
def completed(case: Case) -> Result:
    """Whether the run ended without an error at its root and its topmost agent; 1 or 0."""
    trace = case.trace
    if headless(case):
        return incomplete(case)
    if trace is None:
        return _completed_by_its_case(case)
    found: list[tuple[str | None, Reason]] = [(span.span_id, _failed(span, error)) for span, error in _failures(trace)]
    if case.timed_out:
        found.append((case.root_span_id, Reason("the run timed out")))
    if found:
        return Scored(value=0.0, reason=found[0][1], details=signs(found))
    return _OK


def _completed_by_its_case(case: Case) -> Result:
    """Of a run without its trace: an error stated beside an answer may be the run's, or one that it got over."""
    if case.timed_out:
        return Scored(value=0.0, reason=Reason("the run timed out"))
    if case.error is None or any(call.error == case.error for call in case.tools_used or ()):
        return _OK
    if shows(case.model_output):
        return Unavailable(Reason("a step failed, and without the trace it is not known whether the run did"))
    return Scored(value=0.0, reason=Reason("the run failed: {why}", why=stated_cause(case.error)))


def ends(trace: Trace) -> Sequence[Span]:
    """The spans that speak for the whole: the trace's root, the run's, the topmost agent, a queue's task, once each.

    And an agent's last step that failed, where the agent went on to nothing.
    """
    last = max(speaking(trace), key=lambda span: span.end_ns, default=None)
    below = () if last is None else (_task(trace, last), _last_step(trace, last))
    found = (trace.root, trace.run_root, top(trace), *below)
    return list({span.span_id: span for span in found if span is not None}.values())


def _failures(trace: Trace) -> Sequence[tuple[Span, str]]:
    """The ends that failed, and their errors, without what the agent got over."""
    return [(span, span.error) for span in ends(trace) if span.error is not None and not _got_over(trace, span)]


def _got_over(trace: Trace, step: Span) -> bool:
    """Whether the error of a step around the agent is a tool's that ends no run, and nothing failed since.

    OpenAI's agents state so of an error that they hand to the model. AWS's distribution hands the first error of a run
    to the workflow, whatever came of it; what ended the run is then an agent's or a model's alone.
    """
    last = max(speaking(trace), key=lambda span: span.end_ns, default=None)
    if step.error is None or _NOT_FATAL not in step.error or step.kind not in _OWN_STEPS:
        return False
    if last is None or last.error is not None or asks_for_tools(last):
        return False
    failed = [span for span in trace.spans if span.error is not None]
    around = {span.span_id for span in failed if span.kind in _OWN_STEPS and span.error == step.error}
    since = [span for span in failed if span.end_ns > last.start_ns]
    if any(span.span_id not in around or span.start_ns > last.start_ns for span in since):
        return False
    return any(span.kind is SpanKind.TOOL and span.error == step.error for span in failed)


def _task(trace: Trace, last: Span) -> Span | None:
    """The step around the last model call that took up a message and ended after the root, which did not wait.

    None where it failed and its message was taken up again, or where the request called a model, too: what failed then
    may have been beside the answer.
    """
    if trace.root is None:
        return None
    above = (span for span in islice(trace.ancestors(last), _MOST_ABOVE) if span.from_queue)
    task = next((span for span in above if span.end_ns > trace.root.end_ns), None)
    if task is None or task.error is None:
        return task
    queued = from_above(trace, False, lambda span, upper: upper or span.from_queue)
    again = (
        span.from_queue and span.name == task.name and span.error is None and span.start_ns >= task.end_ns
        for span in trace.spans
    )  # fmt: skip
    return None if any(again) or not all(queued[call.span_id] for call in speaking(trace)) else task


def _last_step(trace: Trace, last: Span) -> Span | None:
    """The step right below the agent with the last model call, if it failed and had no consequence.

    OpenAI's agents give an error by which a run ends, such as an answer of the wrong type, to the turn alone. Of agents
    within each other it is the outer one whose step counts: it gets over what fails in the others, as over tools.
    """
    if last.error is not None:
        return None
    above = list(islice(trace.ancestors(last), _MOST_ABOVE))
    place = max((at for at, span in enumerate(above) if span.kind is SpanKind.AGENT), default=0)
    if place == 0:
        return None
    step, agent = above[place - 1 : place + 1]
    if step.error is None or step.kind not in _OWN_STEPS or agent.output not in (None, last.output):
        return None
    if any(span.start_ns >= step.end_ns for span in trace.children.get(agent.span_id, ())):
        return None
    answers = [span.output for span in above[place:] if span.output not in (None, last.output)]
    return None if answers and any(call.output in answers for call in trace.models) else step


@run_metric(
    pass_or_fail,
    formula="1 if the output of the trace, its root, its topmost agent or its last model call holds anything, else 0",
    undefined="contents were not captured (of the last model call at least) or not understood, the answer is JSON "
    "without contents or stands beside a last call of a tool alone, nothing shows what came of that call, or the trace "
    "is incomplete; not applicable where nothing gives answers",
)
@of_run
def answered(case: Case) -> Result:
    """Whether the run gave an answer; 1 or 0."""
    if headless(case):
        return incomplete(case)
    if shows(case.model_output):
        if case.trace is None or not written_beside_a_call(case.trace, case.model_output):
            return _OK
        return _GOES_ON if _goes_on_elsewhere(case) else _BESIDE_A_CALL
    return _NO_TRACE if _is_left_open(case) else _unanswered(case)


def _is_left_open(case: Case) -> bool:
    """Whether what is left of a trace states no answer: one that is known to be empty is stated as ""."""
    left = case.trace is None and case.completion is not None
    return left and case.model_output is None and case.content_captured and case.complete


def has_no_answer(case: Case) -> bool:
    """Whether it is known that the run gave no answer, and not only that none is known."""
    found = answered.start(case) if case.model_output is None else None
    return isinstance(found, Scored) and found.value == 0.0


def _failed_as_a_whole(case: Case) -> bool:
    return case.trace is not None and bool(_failures(case.trace))


def _no_model_answered(case: Case) -> bool:
    """Whether every model call of the run failed, and none was cancelled: there is no answer that was not captured."""
    models = () if case.trace is None else speaking(case.trace)
    failed = (call.error is not None and not _CANCELLED.match(call.error) for call in models)
    return bool(models) and all(failed)


def _failed_around_it(case: Case) -> bool:
    """Whether a step above the last model call failed, such as the turn of OpenAI's agents that ends in a bad call."""
    last = last_model_call(case)
    above = () if case.trace is None or last is None else islice(case.trace.ancestors(last), _MOST_WRAPPERS)
    return any(span.error is not None for span in above)


def attributes_left_out(case: Case) -> int:
    """How many attributes the SDK left out beyond its limit of a span."""
    return 0 if case.trace is None else sum(span.dropped_attributes for span in case.trace.spans)


def _unanswered(case: Case) -> Result:
    """The result where no answer shows: there is none, or it is not known."""
    if case.unread_answer:
        first = case.unread_answer[0]
        why = "the answer may stand in {source} ({shape}), which was not understood"
        return Unavailable(Reason(why, source=part(label(first.source)), shape=part(label(first.shape))))
    if not case.content_captured and not _no_model_answered(case):
        return Unavailable(Reason("the telemetry carries no contents"))
    if (left_out := attributes_left_out(case)) > 0 and not _failed_as_a_whole(case):
        return Unavailable(Reason("the SDK left out {n} attributes, of which one may hold the answer", n=left_out))
    if not case.complete and not _states_none(case):
        return incomplete(case)
    if _may_mean_nothing(case):
        return Unavailable(Reason("the answer is JSON without contents, which may be meant or stand for none"))
    if case.trace is not None and not _may_answer(case.trace):
        return _NO_ANSWER
    if (elsewhere := _open_end(case)) is not None:
        return elsewhere
    if _not_recorded(case):
        return _NOT_RECORDED
    if _waits(case) and not _failed_as_a_whole(case) and not _failed_around_it(case):
        return _WAITS
    return Scored(
        value=0.0, reason=Reason("the run ended without an answer"), details=signs([(case.root_span_id, "no answer")])
    )


def _states_none(case: Case) -> bool:
    """Whether the root itself states an empty answer, and no model's answer is awaited, which would count as well."""
    root = None if case.trace is None else case.trace.root
    if (last := last_model_call(case)) is not None and asks_for_tools(last):
        return False
    said = () if root is None else root.output_messages
    return bool(said) and not any(shows_text(each.text) or each.tool_calls or each.withheld for each in said)


def _open_end(case: Case) -> NotApplicable | Unavailable | None:
    """Why a run that ended behind a call of a tool may have an answer elsewhere, or as that call; None without one."""
    again = _ended_by_a_call(case)
    if (again is None and _goes_on_elsewhere(case)) or (_hands_over(case) and not _failed_as_a_whole(case)):
        return _GOES_ON
    return _ENDED_BY_A_CALL if again is False else None


def _may_mean_nothing(case: Case) -> bool:
    """Whether the answer is empty JSON, by which a model may report that there is nothing.

    Empty JSON that no model wrote is no answer.
    """
    if case.model_output is None or (isinstance(case.model_output, str) and not shows_text(case.model_output)):
        return False
    models = [] if case.trace is None else case.trace.models
    if not any(call.output_messages for call in models):
        return True  # what a model wrote is not known
    if case.trace is not None and demanded_form(case.trace) is not None:
        return True
    return any(isinstance(call.output, str) and shows_text(call.output) for call in models)


def _goes_on_elsewhere(case: Case) -> bool:
    """Whether the trace holds only single model calls and the last one calls a tool."""
    last = last_model_call(case)
    requested = last is not None and asks_for_tools(last)
    return requested and case.trace is not None and all(span.kind is not SpanKind.AGENT for span in case.trace.spans)


def _ended_by_a_call(case: Case) -> bool | None:
    """Of a loop that its client ended behind a call whose result is there: whether it had gone on behind such calls.

    The AI SDK states so of ``generateText`` and the like. Their condition to stop may be a number of steps, or a call
    of a certain tool: one behind which the loop went on before is none, unless it failed then and has succeeded now.
    None for anything else, such as a single model call that nobody takes for an agent's run.
    """
    trace, last = case.trace, last_model_call(case)
    if trace is None or last is None or _waits(case):
        return None
    whole = next((span for span in islice(trace.ancestors(last), 2) if span.finish_reason == "tool_calls"), None)
    if whole is None or whole.kind not in (SpanKind.CHAIN, SpanKind.AGENT):
        return None
    steps = [
        span
        for each in trace.children[whole.span_id]
        for span in (trace.children.get(each.span_id, ()) if each.kind is SpanKind.CHAIN else (each,))
        if span.kind is SpanKind.LLM
    ]
    called = [{call.name for each in step.output_messages for call in each.tool_calls} for step in steps]
    if not steps or steps[-1] is not last or not called[-1] or (len(steps) == 1 and whole.kind is SpanKind.CHAIN):
        return None
    done = [step for step in case.once(run_steps).calls or () if step.failure is None]
    before = {step.call.name for step in done if step.start_ns < last.start_ns}
    now = {step.call.name for step in done if step.start_ns >= last.start_ns}
    return called[-1] <= set().union(*called[:-1]) and called[-1] & now <= before


def _hands_over(case: Case) -> bool:
    """Whether the run ends as an agent passes the work to another, which then runs in a trace of its own.

    So do the runtimes of Semantic Kernel and AutoGen, in which agents send messages to each other.
    """
    last, calls = last_model_call(case), case.tools_used or ()
    if last is None or not calls or not asks_for_tools(last) or not calls[-1].handoff or calls[-1].error is not None:
        return False
    return not any(agent.casefold() in calls[-1].name.casefold() for agent in case.agents_called or ())


def _waits(case: Case) -> bool:
    """Whether nothing shows what came of a call of the last model call: a person or the caller may be to answer it.

    Some frameworks, OpenAI's agents among them, end the span of a call that a person is to approve without an outcome.
    """
    last = last_model_call(case)
    calls = case.once(run_steps).calls or ()
    return last is not None and any(
        step.span_id == last.span_id if step.open else step.start_ns >= last.end_ns and _has_no_outcome(step)
        for step in calls
    )


def _has_no_outcome(step: CallStep) -> bool:
    return step.failure is None and step.call.result is step.call.error is None and step.call.arguments is not None


def _not_recorded(case: Case) -> bool:
    """Whether an answer may exist unrecorded: no step that could give one recorded anything, not even emptiness.

    Clients that record requests leave out answers all the same: of streams, or because they send them elsewhere.
    """
    last = last_model_call(case)
    if case.trace is None or (last is not None and (last.error is not None or last.output is not None)):
        return False
    if last is not None and any(
        not message.withheld
        for call in speaking(case.trace) if call.start_ns >= last.start_ns  # the last one, and what it wraps
        for message in call.output_messages
    ):  # fmt: skip
        return False
    return not _failures(case.trace) and all(span.output is None for span in ends(case.trace))


def _may_answer(trace: Trace) -> bool:
    """Embeddings, retrievals and single tools return no answer to anybody."""
    return any(span.kind in (SpanKind.AGENT, SpanKind.LLM) or span.agent is not None for span in trace.spans)


@run_metric(
    pass_or_fail,
    formula="0 if the last model call stopped for length or a content filter, or the answer is an error or a "
    "service's message",
    undefined="not applicable without an answer in words",
)
@of_run
def answer_intact(case: Case) -> Result:
    """Whether the answer is whole and an answer: not cut off, not filtered, not an error message; 1 or 0."""
    if headless(case):
        return incomplete(case)
    last = last_model_call(case)
    ended = last or _lone_agent(case)
    if ended is not None and (cut := _CUT_OFF.get(_stopped_by(case, ended) or "")) is not None:
        return Scored(value=0.0, reason=cut, details=signs([(ended.span_id, cut)]))
    answer = sole_text(case.model_output)
    if not answer:
        return _NO_WORDS
    if last is not None and _is_error(answer, last.error or ""):
        found = [(last.span_id, _ITS_ERROR)]
        return Scored(value=0.0, reason=_ITS_ERROR, details=signs(found))
    results = [step.call.result for step in case.once(run_steps).calls or () if step.failure is None]
    if (failure := answer_failure(answer, case.input, results)) is not None:
        return Scored(
            value=0.0, reason=Reason("the answer is an error message ({failure})", failure=failure_part(failure)),
            details=signs([(case.root_span_id, f"answer is an error message ({failure})")]),
        )  # fmt: skip
    return _OK


def _is_error(answer: str, error: str) -> bool:
    """Whether an answer is what an error states, and not what the model wrote, which some errors quote."""
    before, found, _ = error.partition(answer)
    return len(answer) >= _LEAST_MESSAGE and bool(found) and not _QUOTED.search(before[-_MOST_BEFORE:])


def _lone_agent(case: Case) -> Span | None:
    """The agent that ended last where no model call is shown, as of Haystack's agents with OpenInference."""
    agents = () if case.trace is None else (span for span in case.trace.spans if span.kind is SpanKind.AGENT)
    return max(agents, key=lambda span: span.end_ns, default=None)


def _stopped_by(case: Case, last: Span) -> str | None:
    """Why the last model call stopped: some clients leave that to the calls below it, others to the step above it."""
    if last.finish_reason is not None or case.trace is None:
        return last.finish_reason
    if last.span_id in case.trace.children:
        below = from_above(case.trace, False, lambda span, upper: upper or span is last)
        if within := [span for span in speaking(case.trace) if below[span.span_id]]:
            return max(within, key=lambda span: span.end_ns).finish_reason
    above = case.trace.parent(last)
    if above is None or not (above.kind is SpanKind.CHAIN or _is_same_call(above, last)):
        return None
    return above.finish_reason


def _is_same_call(above: Span, last: Span) -> bool:
    """Whether the span above a model call is one of that call, as LiteLLM has two, and not of an earlier one."""
    return above.kind is SpanKind.LLM and last.output in (None, above.output)


@run_metric(
    pass_or_fail,
    formula="0 if a short answer opens with a refusal, else 1",
    methods=(Method.LEXICAL,),
    undefined="not applicable without an answer in words",
)
@of_run
def not_refused(case: Case) -> Result:
    """Whether the answer is something else than a refusal; 1 or 0. An estimate by words, in ten languages."""
    if headless(case):
        return incomplete(case)
    answer = sole_text(case.model_output)
    if not answer:
        return _NO_WORDS
    if is_refusal(answer):
        found = [(case.root_span_id, "the answer is a refusal")]
        return Scored(
            value=0.0, method=Method.LEXICAL, reason=Reason("the answer reads as a refusal"), details=signs(found)
        )
    return Scored(value=1.0, method=Method.LEXICAL)


def last_model_call(case: Case) -> Span | None:
    """The model call that ended last, by the span that shows it where another of its time and usage does not.

    None without one.
    """
    models = () if case.trace is None else speaking(case.trace)
    last = max(models, key=lambda span: span.end_ns, default=None)
    if last is None or last.usage is None or last.output is not None or last.output_messages or last.input_messages:
        return last
    same = (each for each in models if each.input_messages and each.usage == last.usage and each is not last)
    return next((each for each in same if each.start_ns <= last.end_ns and last.start_ns <= each.end_ns), last)


def _failed(span: Span, error: str) -> Reason:
    kind = "step" if span.kind is SpanKind.OTHER else span.kind.value
    named = part(label(span.agent or span.name))
    return Reason("{kind} {name} failed: {why}", kind=own(kind), name=named, why=stated_cause(error))
