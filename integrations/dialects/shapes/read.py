"""The reader by shape: fills in the fields that a dialect left open, and overrides none.

Ambiguous values stay unread and are named: two different values with the same claim to a field, a value whose name
shows neither input nor output, an answer of unknown shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from sidejudge.integrations.dialects import messages, model_call, unwrap
from sidejudge.integrations.dialects.cut_off import is_cut
from sidejudge.integrations.dialects.model_call import LANGCHAIN_MODEL, real
from sidejudge.integrations.dialects.reading import failure, recorded, worded
from sidejudge.integrations.dialects.span_fields import CONTENTS, SpanFields
from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.trace.agent_runs import NAMED_BY_SPAN
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind, ToolCall, Unread

from . import kinds, values
from .contents import (
    NAME,
    PLAIN_IN,
    PLAIN_OUT,
    PROMPTED,
    REPLIED,
    Candidate,
    SpanContents,
    in_words,
    is_said_once,
    plain,
    says_that_it_ran,
    unnested,
)
from .settled_kind import settled, states_tool
from .sources import TURNS, NamedValue, last_turn, named_turns, sources, with_results
from .values import Seen
from .words import words

Filled: TypeAlias = Literal[
    "usage", "model", "requested_model", "cost_usd", "response_id", "system_prompt", "agent", "error", "documents",
]  # fmt: skip
BY_SHAPE: Final = "by shape"
_READ: Final = frozenset(
    {SpanKind.LLM, SpanKind.TOOL, SpanKind.AGENT, SpanKind.CHAIN, SpanKind.RETRIEVER, SpanKind.OTHER}
)
_MODELED: Final = frozenset({SpanKind.LLM, SpanKind.AGENT})
_CALLERS: Final = frozenset({SpanKind.AGENT, SpanKind.CHAIN})
_RAISING: Final = _CALLERS | {SpanKind.LLM}
_AGENT_NAME: Final = "gen_ai.agent.name"
_TURN: Final = re.compile(r"event \S*\b(?P<role>assistant|tool)\.message: ")
"""An event for one message to a model, or for its answer."""
_AT_ONCE_NS: Final = 10_000_000
"""Within 10 ms an exception that nothing catches has ended its step."""
_STEPS: Final = frozenset({SpanKind.CHAIN, SpanKind.OTHER})
_GENERAL: Final = frozenset({"generic", "genai", "langwatch"})
"""Dialects of no single client: the client's own attributes may hold the fields that they leave open."""
_UNDECIDED: Final = (None, "no operation")
"""A dialect's note on a kind that it did not decide."""
_FAILED: Final = frozenset({"error", "failed", "failure"})
_SAID_OF_FAILURE: Final = {"error": frozenset({"true"}), "success": frozenset({"false"})}
"""How a span says that it failed in an attribute that is a question, by the last word of its name."""


_PROVIDER: Final = re.compile(
    r"(?:openai|azure|anthropic|google|gemini|vertex_ai|bedrock|mistral|cohere|groq|xai|deepseek|ollama)/(?=[^/]+\Z)"
)
"""Prefixes that LiteLLM and its imitators put before the name of a model."""


def complete(raw: RawSpan, span: Span) -> Span:
    """The span with open fields filled from the shapes of its attributes and events."""
    events = bool(raw.events) and span.kind in _CALLERS and span.dialect in _GENERAL
    if (_whole(span) and not events) or (span.kind in _STEPS and span.dialect not in _GENERAL):
        return span
    there = sources(raw, tuple(raw.attributes))
    if span.kind is not SpanKind.LLM and not any(_tells(source) for source in there):
        return span
    reader = _Reader(raw, span, there)
    reader.read()
    return reader.span()


def _tells(source: NamedValue) -> bool:
    """Whether a source alone is reason to read a span; a name of something or a kind of another program's is none."""
    if source.meaning is None or source.meaning == "own_name":
        return values.may_be_chat(source.value)
    return source.meaning != "kind" or kinds.stated(source.value) is not None


def _whole(span: Span) -> bool:
    """Whether nothing is open that could be read by shape."""
    match span.kind:
        case SpanKind.LLM:
            return (
                (span.input is not None or messages.hold_something(span.input_messages))
                and (span.output is not None or messages.hold_something(span.output_messages))
                and span.usage is not None
                and (span.model or span.requested_model) is not None
            )
        case SpanKind.TOOL:
            tool = span.tool
            return (
                tool is not None and tool.arguments is not None and (tool.result is not None or tool.error is not None)
            )
        case SpanKind.RETRIEVER:
            return bool(span.documents)
        case SpanKind.OTHER if span.provenance.get("kind") in _UNDECIDED:
            return False
        case SpanKind.AGENT | SpanKind.CHAIN | SpanKind.OTHER:
            return span.input is not None and span.output is not None
    return True


class _Reader:
    """One span being completed."""

    def __init__(self, raw: RawSpan, span: Span, there: Sequence[NamedValue]) -> None:
        self._raw, self._span, self._there = raw, span, SpanContents(raw, span, there)
        self._fields: SpanFields = {}
        self._provenance: dict[str, str] = {}
        self._kind = span.kind

    def span(self) -> Span:
        """The span as it was completed."""
        unread = self._unread()
        if not self._provenance and not unread:
            return self._span
        found = {**self._fields, "unread": unread, "kind": self._kind}
        if self._provenance:
            found["provenance"] = {**self._span.provenance, **self._provenance}
            if any(self._fields.get(field) not in (None, ()) for field in CONTENTS):
                found["capture_switch"] = None
        return replace(self._span, **found)

    @property
    def _known(self) -> bool:
        """Whether a dialect of one family read the span, which knows what its steps hold."""
        return self._span.dialect not in _GENERAL

    def read(self) -> None:
        """Settle the kind of the span, then fill in the open fields."""
        self._settle()
        if self._kind not in _READ:
            return
        if self._span.error is None and self._kind not in _STEPS:
            self._failed()
        if self._kind is SpanKind.TOOL:
            self._tool()
            return
        if self._kind in _MODELED:
            self._model_call()
            if not self._known and "LLM" in self._span.tags:  # its kind, which Logfire makes a tag
                self._fields["tags"] = tuple(tag for tag in self._span.tags if tag != "LLM")
            self._agent()
        self._contents()
        stated = self._span.output_messages
        if (
            self._kind in _CALLERS
            and not any(m.tool_calls for m in stated)
            and (called := with_results(self._there.turns))
        ):
            self._fields["output_messages"] = (*called, *stated)
            self._note("output_messages", TURNS.name)
        if self._kind is SpanKind.AGENT and not stated and (waits := self._there.awaited()) is not None:
            self._fields["output_messages"] = (Message(role="assistant", tool_calls=(waits[0],)),)
            self._note("output_messages", waits[1])
        if self._kind is SpanKind.RETRIEVER and not self._span.documents:
            self._retrieved()
        if self._span.error is None and self._kind in _RAISING and not self._known:
            self._raised()

    def _settle(self) -> None:
        """The kind of the span: an operation that the conventions do not list may be a tool's."""
        if self._kind is SpanKind.OTHER and self._span.provenance.get("kind") in _UNDECIDED:
            self._kind, source = settled(self._there)
            if self._kind is not SpanKind.OTHER:
                self._note("kind", source)
        elif (
            self._kind is SpanKind.CHAIN
            and (tool := self._there.text("tool"))
            and (self._there.of("input", "parameters") or states_tool(self._there))
        ):
            self._kind = SpanKind.TOOL  # of an operation that the conventions do not list
            self._note("kind", tool[1])

    def _note(self, field: str, source: str) -> None:
        self._provenance[field] = f"{source} ({BY_SHAPE})"

    def _fill(self, field: Filled, found: tuple[object, str] | None) -> None:
        """Put a found value into its field, and note the source; a field without a value stays open."""
        if found is not None:
            self._fields[field] = found[0]  # type: ignore[typeddict-item]  # each reader finds what its field holds
            self._note(field, found[1])

    # ── what went in and what came out

    def _contents(self) -> None:
        span, chats = self._span, self._kind is not SpanKind.CHAIN
        if self._known and self._kind is SpanKind.AGENT:
            return
        ins, outs = ([pair for pair in among if self._fits_step(pair)] for among in (self._there.ins, self._there.outs))
        if self._kind is SpanKind.OTHER:
            ins = [pair for pair in ins if plain(pair[0], PLAIN_IN) and in_words(pair[1], unwrap.task)]
            prompted = any(plain(pair[0], PROMPTED) for pair in ins)
            among = PLAIN_OUT | REPLIED if prompted else PLAIN_OUT
            outs = [pair for pair in outs if plain(pair[0], among) and in_words(pair[1], unwrap.answer)]
        asked, answered = (messages.hold_something(each) for each in (span.input_messages, span.output_messages))
        if span.input is None and not asked and (found := self._there.best(ins, chats=chats)):
            self._went_in(*found)
        if span.output is None and not answered and (found := self._there.best(outs, chats=chats)):
            self._came_out(*found)
        elif not self._known and self._kind is SpanKind.LLM and self._open("output") and not self._open("input"):
            self._silent()

    def _fits_step(self, pair: Candidate) -> bool:
        """Whether a source may be what the step was given or returned: not a tool's, nor a body around messages."""
        source, seen = pair
        if self._kind in _MODELED and isinstance(seen.value, int | float):
            return False  # a count
        if seen.messages:
            return self._kind is SpanKind.LLM or any(message.role != "system" for message in seen.messages)
        if "tool" in words(source.name) or values.is_state(seen.read):
            return False
        if self._kind not in _MODELED or not values.is_envelope(seen.read):
            return True
        if source.meaning == "input":
            return values.asked(seen.read) is not None
        return source.meaning == "output" and values.sole_text(seen.read) is not None

    def _went_in(self, source: NamedValue, seen: Seen) -> None:
        if seen.messages:
            text = messages.last_text(seen.messages, "user")
            if self._kind is SpanKind.LLM:
                self._fields["input_messages"] = seen.messages
            self._fields["input"] = text if text is not None else None if self._kind is SpanKind.LLM else seen.value
            beside = values.instructions(seen.read)
            if self._span.system_prompt is None and (system := messages.system_text(seen.messages) or beside):
                self._fill("system_prompt", (system, source.name))
        elif (parts := values.asked(seen.read)) is not None:
            self._fields["input"] = parts[0]
            if parts[1] and self._span.system_prompt is None:
                self._fill("system_prompt", (parts[1], source.name))
        else:
            self._fields["input"] = unwrap.only_text(unwrap.task(seen.value))
        self._note("input", source.name)

    def _came_out(self, source: NamedValue, seen: Seen) -> None:
        if seen.messages:
            answered = tuple(message for message in seen.messages if message.role in ("assistant", "tool"))
            if self._kind is SpanKind.LLM:
                self._fields["output_messages"] = answered
            text = messages.last_text(answered, "assistant")
            self._fields["output"] = text.rstrip("\n") if text else text
        else:
            value = unwrap.answer(seen.value)
            if values.is_envelope(seen.read) and unwrap.decoded(value) == seen.read:
                value = unwrap.answer(values.sole_text(seen.read) or value)
            value = value.rstrip("\n") if isinstance(value, str) else value
            if self._kind is SpanKind.LLM and isinstance(value, str):
                self._fields["output_messages"] = (Message(role="assistant", text=value),)
            self._fields["output"] = value
        self._note("output", source.name)

    def _silent(self) -> None:
        """An empty answer: the question is in words, so that contents are kept back of neither."""
        attributes = (source for source in self._there.of("output") if source.attribute)
        found = next((source.name for source in attributes if values.is_empty_answer(source.value)), None)
        turn = {key: unwrap.decoded(value) for key, value in last_turn(self._raw).items()} if found is None else {}
        if found is not None or values.is_empty_answer(turn):
            self._fields |= {"output": "", "output_messages": (Message(role="assistant"),)}
            self._note("output", found or TURNS.name)

    # ── a model call

    def _model_call(self) -> None:
        if self._kind is not self._span.kind:  # no dialect knew it for a call
            model_call.read(self._raw, tuple(self._raw.attributes), self._fields, self._provenance)
        for field, find in self._of_a_call.items():
            if getattr(self._span, field) is None:
                self._fill(field, find())

    @property
    def _of_a_call(self) -> Mapping[Filled, Callable[[], tuple[object, str] | None]]:
        """The fields of a model call and how each is found, in this order, because a field depends on earlier ones."""
        return {
            "usage": lambda: self._there.usage(self._kind),
            "model": self._model,
            "requested_model": self._requested_model,
            "cost_usd": self._cost_usd,
            "response_id": lambda: self._there.text("response_id"),
            "system_prompt": self._system,
        }

    def _model(self) -> tuple[str, str] | None:
        return _without_provider(
            self._there.text("model") or self._in_body("model", "model_version", "modelVersion", "model_name")
        )

    def _requested_model(self) -> tuple[str, str] | None:
        named = self._there.text("requested_model")
        if named is not None and " " not in named[0]:
            return _without_provider(named)
        return None if "model" in self._fields or self._span.model else _without_provider(self._model_asked_for())

    def _model_asked_for(self) -> tuple[str, str] | None:
        """The model among a request's parameters."""
        beside = [(key, value) for key, value in self._raw.attributes.items() if key.endswith(".metadata")]
        for name, value in [*((each.name, each.value) for each in self._there.of("parameters", "input")), *beside]:
            held = unwrap.decoded(value)
            models = (held.get(key) for key in ("model", "modelId", "model_id")) if isinstance(held, dict) else ()
            if model := next((each for each in models if isinstance(each, str) and each), None):
                return model, name
        return None

    def _cost_usd(self) -> tuple[float, str] | None:
        """The cost of the call, where a name states US dollars; differing costs give none."""
        there = [source for source in self._there.of("cost_usd") if "usd" in words(source.name)]
        found = {value: source.name for source in there if (value := real(source.value)) is not None and value >= 0}
        return next(iter(found.items())) if len(found) == 1 else None

    def _in_body(self, *keys: str) -> tuple[str, str] | None:
        """A text under one of the keys, in a response's body or in a map inside it."""
        for source, seen in self._there.outs:
            body = seen.messages or values.is_body(seen.read)
            if body and (text := values.held_text(seen.read, keys)) is not None:
                return text, source.name
            if isinstance(seen.value, str) and (found := LANGCHAIN_MODEL.search(seen.value)):
                return found[1], source.name
        return None

    def _system(self) -> tuple[str, str] | None:
        for source in self._there.of("system"):
            held = unwrap.decoded(source.value)
            if isinstance(held, list | dict):
                parts: list[Json] = held if isinstance(held, list) else [held]
                held = messages.system_text(messages.read({"role": "system", "content": parts}))
            if isinstance(held, str) and values.says_something(held):
                return held, source.name
        return None

    def _agent(self) -> None:
        if self._span.agent is not None:
            return
        if named := self._there.text("agent"):
            if not (self._known and named[1] == _AGENT_NAME):  # else the client's dialect has read it as none
                self._fill("agent", named)
        elif self._kind is SpanKind.AGENT and self._span.kind is SpanKind.OTHER:
            span_name = self._span.name
            named = (
                self._there.text("node", "name")
                or self._there.own_name()
                or (kinds.agent_name(span_name) or span_name, "span name")
            )
            if NAME.fullmatch(named[0]) and not (named[1] == "span name" and says_that_it_ran(named[0])):
                self._fields["agent"] = named[0]
                self._provenance["agent"] = NAMED_BY_SPAN if named[1] == "span name" else f"{named[1]} ({BY_SHAPE})"

    # ── a tool, a retriever

    def _tool(self) -> None:
        tool = self._span.tool
        if tool is None:
            name, source = self._there.tool_name() or (self._span.name, "span name")
            self._note("tool.name", source)
            tool = ToolCall(name=name, error=failure(self._raw) or self._span.error)
        if tool.error is None and (error := self._fields.get("error")) is not None:
            tool = replace(tool, error=error, result=None)
        if tool.arguments is None and (found := self._there.arguments()) is not None:
            tool = replace(tool, arguments=found[0])
            self._note("tool.arguments", found[1])
        returned = [
            *self._there.outs,
            *(pair for pair in self._there.ins if pair[0].meaning == "output"),
        ]  # what users wrote
        if tool.result is None and tool.error is None and (came := self._there.best(returned)):
            outcome = unwrap.result(came[1].messages[0].text if is_said_once(*came) else came[1].value)
            tool = replace(tool, result=outcome.result, error=outcome.error, call_id=tool.call_id or outcome.call_id)
            self._note("tool.result", came[0].name)
        answers = [message for message in self._there.turns if message.role == "tool" and not named_turns(self._raw)]
        if tool.result is None and tool.error is None and len(answers) == 1:
            outcome = unwrap.result(answers[0].text)
            failed = outcome.error or (answers[0].text if answers[0].error else None)
            tool = replace(tool, result=None if failed else outcome.result, error=failed)
            self._note("tool.result", TURNS.name)
        if tool.arguments is not None and tool.result is None and tool.error is None:
            tool = replace(tool, error=self._stated_error())
        if tool.call_id is None and (call_id := self._there.text("call_id")):
            tool = replace(tool, call_id=call_id[0])
            self._note("tool.call_id", call_id[1])
        self._fields |= {"tool": tool, "input": tool.arguments, "output": tool.result}

    def _failed(self) -> None:
        """An error that a client states in an attribute, and not in the span's status."""
        if self._raw.status_code == 2 and failure(self._raw) is None:
            return  # by its status it only went elsewhere, and an attribute repeats the status
        for source in self._there.of("outcome"):
            last, value = words(source.name)[-1], source.value
            failed = str(value).strip('"').lower() in _SAID_OF_FAILURE.get(last, _FAILED)
            if source.attribute and failed:
                stated = self._there.error()
                if stated is None or worded(stated[0]) is not None:  # else it only went elsewhere
                    self._fill("error", stated or ("error", source.name))
                return

    def _raised(self) -> None:
        """Mark a step as failed that has an exception and an input, but neither a status nor an output.

        One after which the step went on was caught: of an attempt that was repeated.
        """
        events = tuple(event for event in self._raw.events if self._raw.end_ns - event.time_ns <= _AT_ONCE_NS)
        silent = not self._open("input") and self._open("output")
        if silent and (raised := recorded(replace(self._raw, events=events))) is not None:
            self._fill("error", (raised, "event exception"))

    def _stated_error(self) -> str | None:
        """An error that a client states beside no result: in an attribute or an event, without a status."""
        if (stated := self._there.error(worded=True)) is not None:
            self._note("error", stated[1])
            return stated[0]
        if (raised := recorded(self._raw)) is not None:
            self._note("error", "event exception")
        return raised

    def _retrieved(self) -> None:
        for source in self._there.of("documents", "output", "content"):
            held = unwrap.decoded(source.value)
            lists = [each for each in held.values() if isinstance(each, list)] if isinstance(held, dict) else [held]
            held = unnested(lists[0]) if len(lists) == 1 else held
            shown = source.meaning == "documents" or values.is_documents(held)
            if shown and (texts := unwrap.documents(held)):
                self._fill("documents", (texts, source.name))
                return

    # ── what was not understood

    def _open(self, side: Literal["input", "output"]) -> bool:
        """Whether neither the dialect nor this reader has found this side's contents."""
        span = self._span
        stated = (span.input, span.input_messages) if side == "input" else (span.output, span.output_messages)
        return not {side, f"{side}_messages"} & self._fields.keys() and _lacks(*stated)

    def _unread(self) -> tuple[Unread, ...]:
        """Sources that may hold the input or the output that is still open."""
        if self._kind not in _READ or self._kind is SpanKind.TOOL:
            return ()
        open_in, open_out = self._open("input"), self._open("output")
        if not open_in and not open_out:
            return ()
        found = []
        calls = self._kind is SpanKind.LLM and open_out
        asked = {source.name for source, seen in self._there.ins if seen.messages}
        asked -= {source.name for source, _ in self._there.outs}  # a chat that holds no answer was understood
        asked.add(self._span.provenance.get("error", ""))
        if self._span.output == "":  # so was what a dialect found empty, which some clients send twice
            empty = self._span.provenance.get("output", "")
            same = self._raw.attributes.get(empty)
            asked |= {empty, *(source.name for source in self._there.sources if source.value == same is not None)}
        turns = named_turns(self._raw) if self._kind is SpanKind.LLM else []
        for source in self._there.sources:
            named = source.meaning in ("input", "output", "content")
            if (
                source.name in asked
                or (turns and _is_history(source.name, turns[-1].name))
                or not (named or (calls and (open_in or not source.attribute) and _is_data(source)))
                or unwrap.unanswered(source.value) is not None
            ):
                continue
            blank = (
                not self._known
                and (self._kind in _MODELED or (self._kind is SpanKind.CHAIN and self._raw.parent_id is None))
                and values.is_blank(source.value)
                and source.meaning == "output"
                and "messages" not in words(source.name)
            )
            if not blank and not (values.says_something(source.value) and not values.is_empty_answer(source.value)):
                continue
            if (source.meaning == "input" and not open_in) or (source.meaning == "output" and not open_out):
                continue
            field = source.meaning if source.meaning in ("input", "output") else ""
            shape = values.describe(source.value)
            cut = is_cut(source.value, self._kind)
            found.append(Unread(source=source.name, shape=shape, field=field, client=self._raw.scope_name, cut=cut))
        return tuple(found)


def _without_provider(named: tuple[str, str] | None) -> tuple[str, str] | None:
    """The name of a model without LiteLLM's prefix, and its source."""
    return None if named is None else (_PROVIDER.sub("", named[0]), named[1])


def _is_history(source: str, last: str) -> bool:
    """Whether a source is an event of a model's history: a tool's, or a model's before the ``last`` event."""
    turn = _TURN.match(source)
    return turn is not None and (turn["role"] == "tool" or not last.endswith("assistant.message"))


def _is_data(source: NamedValue) -> bool:
    """Whether a source whose name says nothing, or counts, holds data all the same; of an event texts too."""
    if source.meaning not in (None, "usage"):
        return False
    texts = source.meaning == "usage" and not source.attribute and values.is_texts(source.value)
    return texts or values.is_data(source.value)


def _lacks(value: Json, found: Sequence[Message]) -> bool:
    return value in (None, "") and not messages.hold_something(found)
