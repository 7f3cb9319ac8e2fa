"""The reader by shape: fills in what a dialect left open of a span, and overrides nothing that it read.

What is ambiguous stays unread and is named: two values that differ and have the same claim to a field, a value whose
name says neither that it went in nor that it came out, an answer whose shape is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from sidejudge.integrations.dialects import messages, unwrap
from sidejudge.integrations.dialects.model_call import LANGCHAIN_MODEL, real
from sidejudge.integrations.dialects.reading import failure, is_no_error, recorded
from sidejudge.integrations.dialects.span_fields import SpanFields
from sidejudge.integrations.raw import AttributeValue, RawSpan
from sidejudge.scoring.trace.agent_runs import NAMED_BY_SPAN
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind, ToolCall, Unread, Usage

from . import counts, kinds, values
from .sources import TURNS, NamedValue, named_turns, sources, turns, with_results
from .values import Seen
from .words import is_way, words

Candidate: TypeAlias = tuple[NamedValue, Seen]
Filled: TypeAlias = Literal[
    "usage", "model", "requested_model", "cost_usd", "response_id", "system_prompt", "agent", "error", "documents",
]  # fmt: skip
BY_SHAPE: Final = "by shape"
_READ: Final = frozenset(
    {SpanKind.LLM, SpanKind.TOOL, SpanKind.AGENT, SpanKind.CHAIN, SpanKind.RETRIEVER, SpanKind.OTHER}
)
_MODELED: Final = frozenset({SpanKind.LLM, SpanKind.AGENT})
_CALLING: Final = frozenset({"llm", "chat", "completion", "completions", "generate", "generation", "inference"})
_CALLERS: Final = frozenset({SpanKind.AGENT, SpanKind.CHAIN})
_STEPS: Final = frozenset({SpanKind.CHAIN, SpanKind.OTHER})
_GENERAL: Final = frozenset({"generic", "genai", "langwatch"})
"""Dialects of no one client: what they leave open of a step may stand in the client's own words."""
_UNDECIDED: Final = (None, "no operation")
"""What a dialect notes of a kind that it did not decide."""
_PLAIN_IN: Final = frozenset({"input", "inputs", "prompt", "question", "user"})
_PLAIN_OUT: Final = frozenset({"output", "outputs", "completion", "answer", "bot", "assistant"})
"""Words that are enough on an otherwise unknown span. ``response`` is not among them: any server has one."""
_OF_TOOLS: Final = frozenset({"arguments", "args", "result", "observation"})
_OF_A_CALL: Final = frozenset({"tool", "call", "function", "action", "invocation"})
_NODES: Final = ("workflow", "nodes")
_FAILED: Final = frozenset({"error", "failed", "failure"})
_IN_EVENTS: Final = ("model", "requested_model", "response_id")
"""What an event says of its span; a tool or an agent that it names may be another's."""
_CERTAIN_KINDS: Final = frozenset(
    {
        ("span", "kind"),
        ("span", "attributes"),
        ("span", "type"),
        ("observation", "type"),
        ("operation", "name"),
        ("run", "type"),
    }
)


_RUNNING: Final = frozenset({
    "invoke", "run", "call", "execute", "start", "ask", "use", "agent", "tool", "function", "step", "task", "node",
})  # fmt: skip
"""Words of a span's name beside the name of the agent or tool that it ran."""
_RUNS: Final = frozenset({"agent", "run", "invoke", "execute", "start", "session"})
_LONGEST_NAME: Final = 200
_NAME: Final = re.compile(r"[^./:\\()]+")
"""What a thing may be called; ``Client.receive_response`` is the name of code."""
_PROVIDER: Final = re.compile(
    r"(?:openai|azure|anthropic|google|gemini|vertex_ai|bedrock|mistral|cohere|groq|xai|deepseek|ollama)/(?=[^/]+\Z)"
)
"""What LiteLLM and others after it put before the name of a model."""


def complete(raw: RawSpan, span: Span) -> Span:
    """The span with what its attributes and events show by their shapes, where the dialect left it open."""
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
                (span.input is not None or _stated(span.input_messages))
                and (span.output is not None or _stated(span.output_messages))
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
        self._raw, self._span, self._workflow = raw, span, _workflow(there)
        self._sources = [each for each in there if each.meaning != "agent" or each.value != self._workflow]
        self._fields: SpanFields = {}
        self._provenance: dict[str, str] = {}
        self._kind = span.kind
        self._ins: list[Candidate] = []
        self._outs: list[Candidate] = []
        self._turns: tuple[Message, ...] = ()

    def span(self) -> Span:
        """The span as it was completed."""
        unread = self._unread()
        if not self._provenance and not unread:
            return self._span
        found = {**self._fields, "unread": unread, "kind": self._kind}
        if self._provenance:
            found["provenance"] = {**self._span.provenance, **self._provenance}
            found["capture_switch"] = None
        return replace(self._span, **found)

    @property
    def _known(self) -> bool:
        """Whether a dialect of one family read the span, which knows what its steps hold."""
        return self._span.dialect not in _GENERAL

    def read(self) -> None:
        """Sort the sources, settle what the span did, then fill in what is open."""
        self._sort()
        if self._kind is SpanKind.OTHER and self._span.provenance.get("kind") in _UNDECIDED:
            self._settle_kind()
        elif self._kind is SpanKind.CHAIN and (tool := self._text("tool")) and self._of("input", "parameters"):
            self._kind = SpanKind.TOOL  # of an operation that the conventions do not list
            self._note("kind", tool[1])
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
        if self._kind in _CALLERS and not any(m.tool_calls for m in stated) and (called := with_results(self._turns)):
            self._fields["output_messages"] = (*called, *stated)
            self._note("output_messages", TURNS.name)
        if self._kind is SpanKind.RETRIEVER and not self._span.documents:
            self._retrieved()

    def _note(self, field: str, source: str) -> None:
        self._provenance[field] = f"{source} ({BY_SHAPE})"

    def _fill(self, field: Filled, found: tuple[object, str] | None) -> None:
        """Put what was found into a field, and note its source; a field that was found nowhere stays open."""
        if found is not None:
            self._fields[field] = found[0]  # type: ignore[typeddict-item]  # each reader finds what its field holds
            self._note(field, found[1])

    def _of(self, *meanings: str) -> list[NamedValue]:
        return [source for source in self._sources if source.meaning in meanings]

    def _text(self, *meanings: str) -> tuple[str, str] | None:
        """A short text of an attribute of these meanings, and its source; several that differ give none."""
        for meaning in meanings:
            there = self._of(meaning)
            own = [source for source in there if "trace" not in words(source.name)]  # what a trace is called is not it
            found = {
                source.value.strip().strip('"'): source.name
                for source in reversed(own or there)
                if (source.attribute or meaning in _IN_EVENTS)
                and isinstance(source.value, str)
                and len(source.value) <= _LONGEST_NAME
                and "\n" not in source.value
                and source.value[:1] not in ("{", "[")
                and source.value.strip().strip('"')
            }
            if meaning == "tool":
                found = _tools(found)
            if len(found) == 1:
                return next(iter(found.items()))
        return None

    # ── what went in and what came out

    def _sort(self) -> None:
        """Which sources went in and which came out: by their names, and of chats by who spoke last."""
        self._turns = turns(self._raw) if self._raw.events else ()
        if any(m.text and m.role != "tool" for m in self._turns) or (self._turns and self._kind is SpanKind.LLM):
            self._sort_chat(TURNS, Seen(value=None, read=None, messages=self._turns))
        declined = set(self._span.provenance.values())  # what the dialect looked at and took nothing from
        for source in self._sources:
            if source.meaning not in ("input", "output", "content", None):
                continue
            if source.meaning is None and not values.may_be_chat(source.value):
                continue
            seen = values.look(source.value)
            if seen is None or (not seen.messages and (source.meaning is None or source.name in declined)):
                continue
            role = {"input": "user", "output": "assistant"}.get(source.meaning or "")
            if not seen.messages and role is not None and (parts := values.of_parts(seen.read, role)):
                seen = replace(seen, messages=parts)
            if seen.messages:
                self._sort_chat(source, seen)
            elif source.meaning == "input":
                self._ins.append((source, seen))
            elif source.meaning == "output":
                self._outs.append((source, seen))

    def _sort_chat(self, source: NamedValue, seen: Seen) -> None:
        """Split a chat that ends with the model's turns: those turns came out, everything before them came in."""
        stated = seen.messages
        answered = len(stated)
        while answered and stated[answered - 1].role == "assistant":
            answered -= 1
        if source.meaning == "input":
            self._ins.append((source, seen))
        elif source.meaning == "output":
            last = max((i for i, m in enumerate(stated) if m.role == "user"), default=-1)
            if any(message.role == "assistant" for message in stated[last + 1 :]):
                self._outs.append((source, replace(seen, messages=stated[last + 1 :])))
            else:
                self._ins.append((source, seen))
        else:
            if answered:
                self._ins.append((source, replace(seen, messages=stated[:answered])))
            if answered < len(stated):
                self._outs.append((source, replace(seen, messages=stated[answered:])))

    def _best(self, among: Sequence[Candidate], *, chats: bool = False) -> Candidate | None:
        """The source with the best claim; None where two with the same one differ. ``chats``: a chat goes first."""
        ranked = sorted(among, key=lambda pair: _claim(pair, chats=chats), reverse=True)
        if not ranked:
            return None
        best = ranked[0]
        for other in ranked[1:]:
            if _claim(other, chats=chats) != _claim(best, chats=chats):
                break
            if chats and best[1].messages:  # the longest history holds the others
                best = max(best, other, key=lambda pair: len(pair[1].messages))
            elif _differ(best[1], other[1]):
                return None
        return best

    def _contents(self) -> None:
        span, chats = self._span, self._kind is not SpanKind.CHAIN
        ins, outs = ([pair for pair in among if self._fits_step(pair)] for among in (self._ins, self._outs))
        if self._kind is SpanKind.OTHER:
            ins = [pair for pair in ins if _plain(pair[0], _PLAIN_IN) and _in_words(pair[1], unwrap.task)]
            outs = [pair for pair in outs if _plain(pair[0], _PLAIN_OUT) and _in_words(pair[1], unwrap.answer)]
        if span.input is None and not _stated(span.input_messages) and (found := self._best(ins, chats=chats)):
            self._went_in(*found)
        if span.output is None and not _stated(span.output_messages) and (found := self._best(outs, chats=chats)):
            self._came_out(*found)

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
            self._fields["input"] = unwrap.task(seen.value)
        self._note("input", source.name)

    def _came_out(self, source: NamedValue, seen: Seen) -> None:
        if seen.messages:
            answered = tuple(message for message in seen.messages if message.role in ("assistant", "tool"))
            if self._kind is SpanKind.LLM:
                self._fields["output_messages"] = answered
            text = messages.last_text(answered, "assistant")
            self._fields["output"] = text.rstrip("\n") if text else text
        else:
            stated = values.sole_text(seen.read) if values.is_envelope(seen.read) else None
            value = unwrap.answer(stated or seen.value)
            value = value.rstrip("\n") if isinstance(value, str) else value
            if self._kind is SpanKind.LLM and isinstance(value, str):
                self._fields["output_messages"] = (Message(role="assistant", text=value),)
            self._fields["output"] = value
        self._note("output", source.name)

    # ── a model call

    def _model_call(self) -> None:
        for field, find in self._of_a_call.items():
            if getattr(self._span, field) is None:
                self._fill(field, find())

    @property
    def _of_a_call(self) -> Mapping[Filled, Callable[[], tuple[object, str] | None]]:
        """The fields of a model call and how each is found, in this order: one looks at those before it."""
        return {
            "usage": self._usage,
            "model": self._model,
            "requested_model": self._requested_model,
            "cost_usd": self._cost_usd,
            "response_id": lambda: self._text("response_id"),
            "system_prompt": self._system,
        }

    def _model(self) -> tuple[str, str] | None:
        return _without_provider(
            self._text("model") or self._in_body("model", "model_version", "modelVersion", "model_name")
        )

    def _requested_model(self) -> tuple[str, str] | None:
        named = self._text("requested_model")
        if named is not None and " " not in named[0]:
            return _without_provider(named)
        return None if "model" in self._fields or self._span.model else _without_provider(self._model_asked_for())

    def _model_asked_for(self) -> tuple[str, str] | None:
        """The model among a request's parameters."""
        beside = [(key, value) for key, value in self._raw.attributes.items() if key.endswith(".metadata")]
        for name, value in [*((each.name, each.value) for each in self._of("parameters", "input")), *beside]:
            held = unwrap.decoded(value)
            models = (held.get(key) for key in ("model", "modelId", "model_id")) if isinstance(held, dict) else ()
            if model := next((each for each in models if isinstance(each, str) and each), None):
                return model, name
        return None

    def _cost_usd(self) -> tuple[float, str] | None:
        """What the call cost, where a name says that it is in US dollars; costs that differ give none."""
        there = [source for source in self._of("cost_usd") if "usd" in words(source.name)]
        found = {value: source.name for source in there if (value := real(source.value)) is not None and value >= 0}
        return next(iter(found.items())) if len(found) == 1 else None

    def _usage(self) -> tuple[Usage, str] | None:
        there = self._of("usage")
        counted = [(source.name, source.value) for source in there if isinstance(source.value, int | str)]
        if (found := counts.by_words(counted)) is not None:
            return found, ", ".join(name for name, _ in counted[:4])
        for source in there:
            held = unwrap.decoded(source.value)
            if isinstance(held, dict) and (found := counts.of_map(held)) is not None:
                return found, source.name
        if self._kind is SpanKind.AGENT:
            return None  # the messages of its run hold the tokens of some of its calls
        for source, seen in self._outs:
            if (found := counts.in_body(seen.read)) is not None:
                return found, source.name
        return None

    def _in_body(self, *keys: str) -> tuple[str, str] | None:
        """A text that a response's body holds under one of the keys, or a map in it does."""
        for source, seen in self._outs:
            if (text := values.held_text(seen.read, keys)) is not None:
                return text, source.name
            if isinstance(seen.value, str) and (found := LANGCHAIN_MODEL.search(seen.value)):
                return found[1], source.name
        return None

    def _system(self) -> tuple[str, str] | None:
        for source in self._of("system"):
            held = unwrap.decoded(source.value)
            if isinstance(held, list | dict):
                parts: list[Json] = held if isinstance(held, list) else [held]
                held = messages.system_text(messages.read({"role": "system", "content": parts}))
            if isinstance(held, str) and held.strip():
                return held, source.name
        return None

    def _agent(self) -> None:
        if self._span.agent is not None:
            return
        if named := self._text("agent"):
            self._fill("agent", named)
        elif self._kind is SpanKind.AGENT and self._span.kind is SpanKind.OTHER:
            span_name = self._span.name
            named = (
                self._text("node", "name")
                or self._own_name()
                or (kinds.agent_name(span_name) or span_name, "span name")
            )
            if _NAME.fullmatch(named[0]):
                self._fields["agent"] = named[0]
                self._provenance["agent"] = NAMED_BY_SPAN if named[1] == "span name" else f"{named[1]} ({BY_SHAPE})"

    # ── a tool, a retriever

    def _tool(self) -> None:
        tool = self._span.tool
        if tool is None:
            name, source = self._tool_name() or (self._span.name, "span name")
            self._note("tool.name", source)
            tool = ToolCall(name=name, error=failure(self._raw) or self._span.error)
        if tool.error is None and (error := self._fields.get("error")) is not None:
            tool = replace(tool, error=error, result=None)
        if tool.arguments is None and (found := self._arguments()) is not None:
            tool = replace(tool, arguments=found[0])
            self._note("tool.arguments", found[1])
        returned = [*self._outs, *(pair for pair in self._ins if pair[0].meaning == "output")]  # what users wrote
        if tool.result is None and tool.error is None and (came := self._best(returned)):
            outcome = unwrap.result(came[1].value)
            tool = replace(tool, result=outcome.result, error=outcome.error, call_id=tool.call_id or outcome.call_id)
            self._note("tool.result", came[0].name)
        answers = [message for message in self._turns if message.role == "tool" and not named_turns(self._raw)]
        if tool.result is None and tool.error is None and len(answers) == 1:
            outcome = unwrap.result(answers[0].text)
            failed = outcome.error or (answers[0].text if answers[0].error else None)
            tool = replace(tool, result=None if failed else outcome.result, error=failed)
            self._note("tool.result", TURNS.name)
        if tool.arguments is not None and tool.result is None and tool.error is None:
            tool = replace(tool, error=self._stated_error())
        if tool.call_id is None and (call_id := self._text("call_id")):
            tool = replace(tool, call_id=call_id[0])
            self._note("tool.call_id", call_id[1])
        self._fields |= {"tool": tool, "input": tool.arguments, "output": tool.result}

    def _failed(self) -> None:
        """An error that a client states in an attribute, and not in the span's status."""
        for source in self._of("outcome"):
            last, value = words(source.name)[-1], source.value
            failed = value is (last == "error") if isinstance(value, bool) else str(value).strip('"').lower() in _FAILED
            if source.attribute and failed and (last != "success" or value is False):
                self._fill("error", self._text("error") or ("error", source.name))
                return

    def _stated_error(self) -> str | None:
        """An error that a client states beside no result: in an attribute or an event, without a status."""
        if (stated := self._text("error")) is not None and not is_no_error(stated[0]):
            self._note("error", stated[1])
            return stated[0]
        if (raised := recorded(self._raw)) is not None:
            self._note("error", "event exception")
        return raised

    def _tool_name(self) -> tuple[str, str] | None:
        """The tool by its attribute or by the span's name; None for a span that is called after tools in general."""
        if named := self._text("tool", "name") or self._own_name():
            return named
        if (called := self._called()) is not None:
            return called[0].name, called[1]
        span_name = self._span.name
        if (name := kinds.tool_name(span_name)) is None and "tool" not in words(span_name):
            name = span_name
        return None if name is None else (name, "span name")

    def _own_name(self) -> tuple[str, str] | None:
        """A part of the span's name that an attribute calls a name: ``research`` of ``run research``."""
        held = {
            source.value: source.name
            for source in reversed(self._of("own_name"))
            if isinstance(source.value, str) and 2 < len(source.value) < len(self._span.name)
            and _NAME.fullmatch(source.value) and source.value in self._span.name
            and _RUNNING.issuperset(words(self._span.name.replace(source.value, "", 1)))
        }  # fmt: skip
        return next(iter(held.items())) if len(held) == 1 else None

    def _called(self) -> tuple[ToolCall, str] | None:
        """The one call of a tool that an attribute holds whole: ``{"name": "lookup", "arguments": {…}}``."""
        found: list[tuple[ToolCall, str]] = []
        for source in self._sources:
            if not _OF_A_CALL.isdisjoint(words(source.name)) and source.meaning not in ("input", "output"):
                held = unwrap.decoded(source.value)
                if values.is_call(held) and (calls := messages.calls([held])):
                    found.append((calls[0], source.name))
        own = {self._span.name, kinds.tool_name(self._span.name), (self._text("tool") or ("",))[0]}
        found += [
            (call, TURNS.name) for message in self._turns for call in message.tool_calls
            if self._span.kind is SpanKind.TOOL or call.name in own
        ]  # fmt: skip
        return found[0] if len(found) == 1 else None

    def _arguments(self) -> tuple[Json, str] | None:
        tool, called = self._span.tool, self._called()
        if called is not None and (tool is None or called[0].name == tool.name):
            return called[0].arguments, called[1]
        given = [(source, seen) for source, seen in self._ins if not seen.messages]
        if (found := self._best(given)) is not None:
            return unwrap.arguments(found[1].value), found[0].name
        for source in self._of("parameters"):
            held = unwrap.arguments(source.value)
            if isinstance(held, dict) and "properties" not in held and held != {"type": "object"}:
                return held, source.name
        return None

    def _retrieved(self) -> None:
        for source in self._of("documents", "output", "content"):
            held = unwrap.decoded(source.value)
            lists = [each for each in held.values() if isinstance(each, list)] if isinstance(held, dict) else [held]
            held = _unnested(lists[0]) if len(lists) == 1 else held
            shown = source.meaning == "documents" or values.is_documents(held)
            if shown and (texts := unwrap.documents(held)):
                self._fill("documents", (texts, source.name))
                return

    # ── what it did

    def _settle_kind(self) -> None:
        kind, source = self._stated_kind() or self._shown_kind() or (SpanKind.OTHER, "")
        if kind is SpanKind.CHAIN and (agent := self._text("agent")) and agent[0] == self._span.name:
            kind, source = SpanKind.AGENT, agent[1]
        elif kind is SpanKind.AGENT and (self._is_workflow() or self._wraps_call()):
            kind = SpanKind.CHAIN
        if kind is SpanKind.TOOL and self._tool_name() is None:
            return  # part of a call, or one of which nobody could say whose
        if kind is not SpanKind.OTHER:
            self._kind = kind
            self._note("kind", source)

    def _is_workflow(self) -> bool:
        """Whether what is called an agent is a graph: its nodes are listed, or it has the name of a workflow alone."""
        for key, value in self._raw.attributes.items():
            if words(key)[-2:] == _NODES and isinstance(nodes := unwrap.decoded(value), list):
                return "agent" not in nodes
        return self._workflow is not None and not self._of("agent")

    def _wraps_call(self) -> bool:
        """Whether what is called an agent is named after its model, and answered without a call of a tool."""
        model = self._text("requested_model")
        answers = [seen.messages for _, seen in self._outs if seen.messages]
        called = any(message.tool_calls for answer in answers for message in answer)
        return model is not None and bool(answers) and not called and self._span.name.endswith(f" {model[0]}")

    def _converses(self) -> bool:
        """Whether the span was asked something in words and answered so: an agent in a shop's records does neither."""
        asked = any(_plain(source, _PLAIN_IN) and _in_words(seen, unwrap.task) for source, seen in self._ins)
        return asked and any(
            _plain(source, _PLAIN_OUT) and _in_words(seen, unwrap.answer) for source, seen in self._outs
        )

    def _stated_kind(self) -> tuple[SpanKind, str] | None:
        """The kind that an attribute names; a bare ``type`` only where the span shows something that fits it."""
        stated = [
            (kind, source.name, words(source.name)[-2:] in _CERTAIN_KINDS or self._states_tool(kind, source))
            for source in self._of("kind")
            if source.attribute
            and "tool" not in words(source.name)[:-1]
            and (kind := kinds.stated(source.value)) is not None
        ]
        stated.sort(key=lambda each: (each[0] is SpanKind.CHAIN, not each[2]))
        for kind, name, certain in stated:
            if certain or (kind is not SpanKind.CHAIN and self._fits(kind)):
                return kind, name
        return None

    def _states_tool(self, kind: SpanKind, source: NamedValue) -> bool:
        """Whether a kind is called a tool in that word, of a span that was given arguments by name."""
        named = kind is SpanKind.TOOL and isinstance(source.value, str) and "tool" in words(source.value)
        return named and any(isinstance(seen.read, dict) and not seen.messages for _, seen in self._ins)

    def _fits(self, kind: SpanKind) -> bool:
        if kind is SpanKind.LLM:
            mapped = self._span.input is not None or self._span.output is not None
            return mapped or bool(self._ins or self._outs or self._of("usage"))
        if kind is SpanKind.AGENT and any(_in_words(seen, unwrap.task) for _, seen in (*self._ins, *self._outs)):
            return True
        among = _PLAIN_IN | _PLAIN_OUT | (_OF_TOOLS if kind is SpanKind.TOOL else frozenset())
        plain = any(_plain(source, among) or is_way(source.name) for source, _ in (*self._ins, *self._outs))
        return plain or bool(self._of("tool", "agent", "documents"))

    def _shown_kind(self) -> tuple[SpanKind, str] | None:
        """The kind that shows in what the span holds, else in its name together with that."""
        chat_in, chat_out = (
            next((source.name for source, seen in among if seen.messages and "tool" not in words(source.name)), None)
            for among in (self._ins, self._outs)
        )
        model = self._text("model", "requested_model")
        used = self._usage()
        if (chat_in or chat_out) and (model or used):
            return SpanKind.LLM, chat_in or chat_out or ""
        if model and used:
            return SpanKind.LLM, used[1]
        if (used or (model and self._ins and self._outs)) and not _CALLING.isdisjoint(words(self._span.name)):
            return SpanKind.LLM, used[1] if used else model[1] if model else ""
        if not chat_in and not chat_out and (tool := self._shown_tool()) is not None:
            return SpanKind.TOOL, tool
        for source in self._of("documents"):
            if values.is_documents(_unnested(unwrap.decoded(source.value))):
                return SpanKind.RETRIEVER, source.name
        if (agent := self._shown_agent()) is not None:
            return SpanKind.AGENT, agent
        if chat_in and chat_out:
            return SpanKind.CHAIN, chat_in
        return None

    def _shown_tool(self) -> str | None:
        """What shows that a tool was called: its name beside what it was given, the span's name, or the call itself."""
        tool = self._text("tool")
        if tool and _says_name(tool[1]) and (self._ins or self._outs or self._of("call_id", "parameters")):
            return tool[1]
        if tool and (given := self._arguments()) is not None and isinstance(given[0], dict):
            return tool[1]
        if (called := self._called()) is not None:
            return called[1]
        given = self._arguments() if kinds.tool_name(self._span.name) else None
        return "span name" if given is not None and isinstance(given[0], dict) else None

    def _shown_agent(self) -> str | None:
        """What shows that an agent ran here: its name in the span's or beside what it was asked, or the span's name."""
        agent = self._text("agent")
        if agent and _says_name(agent[1]) and agent[0] in self._span.name:
            return agent[1]
        if agent and (self._converses() or (self._runs_agent() and (self._ins or self._outs))):
            return agent[1]
        return "span name" if kinds.agent_name(self._span.name) and (self._ins or self._outs) else None

    def _runs_agent(self) -> bool:
        """Whether the span's name says that an agent ran, and not which: ``acme.agent.run``."""
        named = words(self._span.name)[-2:]
        return "agent" in named and _RUNS.issuperset(named)

    # ── what was not understood

    def _unread(self) -> tuple[Unread, ...]:
        """What may hold the input or the output that is still open."""
        if self._kind not in _READ or self._kind is SpanKind.TOOL:
            return ()
        span = self._span
        open_in = not {"input", "input_messages"} & self._fields.keys() and _lacks(span.input, span.input_messages)
        open_out = not {"output", "output_messages"} & self._fields.keys() and _lacks(span.output, span.output_messages)
        if not open_in and not open_out:
            return ()
        found = []
        calls = self._kind is SpanKind.LLM and open_out
        asked = {source.name for source, seen in self._ins if seen.messages}
        asked -= {source.name for source, _ in self._outs}  # a chat that holds no answer was understood
        for source in self._sources:
            named = source.meaning in ("input", "output", "content")
            data = source.meaning in (None, "usage") and values.is_data(source.value)
            data |= source.meaning == "usage" and not source.attribute and values.is_texts(source.value)
            if source.name in asked or not (named or (calls and data and (open_in or not source.attribute))):
                continue
            blank = (
                values.is_blank(source.value) and source.meaning == "output" and "messages" not in words(source.name)
            )
            if not blank and not values.says_something(source.value):
                continue
            if (source.meaning == "input" and not open_in) or (source.meaning == "output" and not open_out):
                continue
            field = source.meaning if source.meaning in ("input", "output") else ""
            shape = values.describe(source.value)
            found.append(Unread(source=source.name, shape=shape, field=field, client=self._raw.scope_name))
        return tuple(found)


def _tools(found: Mapping[str, str]) -> dict[str, str]:
    """Names of tools without those that are words for any tool, and one for ``mcp__server__lookup`` and ``lookup``."""
    named = {name: source for name, source in found.items() if kinds.stated(name) is None}
    return {
        name: source for name, source in named.items()
        if not any(name != other and name.endswith(f"__{other}") for other in named)
    }  # fmt: skip


def _workflow(there: Sequence[NamedValue]) -> AttributeValue:
    """The name of the workflow that a span says it is, beside a kind that says otherwise; None for another span."""
    if not any(source.meaning == "kind" and kinds.stated(source.value) is SpanKind.CHAIN for source in there):
        return None
    return next((source.value for source in there if words(source.name)[-2:] == ("workflow", "name")), None)


def _without_provider(named: tuple[str, str] | None) -> tuple[str, str] | None:
    """The name of a model without what LiteLLM puts before it, and its source."""
    return None if named is None else (_PROVIDER.sub("", named[0]), named[1])


def _plain(source: NamedValue, among: frozenset[str]) -> bool:
    return not among.isdisjoint(words(source.name))


def _says_name(key: str) -> bool:
    """Whether a key says that its value is a name, and not only whose it is: ``agent.name``, no ``agent``."""
    return words(key)[-1:] != ("agent",) and words(key)[-1:] != ("tool",)


def _in_words(seen: Seen, peeled: Callable[[Json], Json]) -> bool:
    """Whether a value is a text, and no data that a step of any program takes and returns."""
    if seen.messages or values.asked(seen.read) is not None:
        return True
    value = peeled(seen.value)
    return isinstance(value, str) and not isinstance(unwrap.decoded(value), dict | list)


def _claim(pair: Candidate, *, chats: bool) -> tuple[bool, bool, int]:
    source, seen = pair
    return chats and bool(seen.messages), source.attribute, source.directness


def _differ(one: Seen, other: Seen) -> bool:
    return one.read != other.read


def _unnested(value: Json) -> Json:
    """``[{"document": {…}}]`` as ``[{…}]``: so lists come that are spread over keys."""
    if isinstance(value, list):
        return [next(iter(item.values())) if isinstance(item, dict) and len(item) == 1 else item for item in value]
    return value


def _stated(found: Sequence[Message]) -> bool:
    return any(message.text or message.tool_calls for message in found)


def _lacks(value: Json, found: Sequence[Message]) -> bool:
    return value in (None, "") and not _stated(found)
