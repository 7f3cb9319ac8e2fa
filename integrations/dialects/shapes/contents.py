"""The contents of a span, by the meaning of its names: short texts, input, output, the turns of its events.

Ambiguous values are left out: two different values with the same claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from sidejudge.integrations.dialects import messages, unwrap
from sidejudge.integrations.dialects.genai import MERGED_TOOLS
from sidejudge.integrations.dialects.reading import LONGEST_ERROR, is_no_error
from sidejudge.integrations.raw import AttributeValue, RawSpan
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind, ToolCall, Usage

from . import counts, kinds, values
from .sources import TURNS, NamedValue, turns
from .values import Seen
from .words import Meaning, words

Candidate: TypeAlias = tuple[NamedValue, Seen]
_IN_EVENTS: Final = ("model", "requested_model", "response_id")
"""An event's facts on its span; a tool or an agent that it names may be another span's."""
_OF_A_CALL: Final = frozenset({"tool", "call", "function", "action", "invocation"})
_RUNNING: Final = frozenset({
    "invoke", "run", "call", "execute", "start", "ask", "use", "agent", "tool", "function", "step", "task", "node",
})  # fmt: skip
"""Words of a span's name beside the name of the agent or tool that it ran."""
_OF_A_REQUEST: Final = frozenset({"name", "arguments", "_meta", "tool_name", "call_id", "id", "type"})
_LONGEST_NAME: Final = 200
NAME: Final = re.compile(r"[^./:\\()]+")
"""Whether a text may be a name; ``Client.receive_response`` is the name of code."""
PLAIN_IN: Final = frozenset({"input", "inputs", "prompt", "question", "user"})
PLAIN_OUT: Final = frozenset({"output", "outputs", "completion", "answer", "bot", "assistant"})
"""Words that are enough on an otherwise unknown span. ``response`` is not among them: any server has one."""
PROMPTED: Final = frozenset({"prompt", "question"})
REPLIED: Final = frozenset({"response", "reply"})
"""Words that are enough beside what a person or a model was asked in words."""


class SpanContents:
    """The contents of one span: ``ins`` and ``outs``, as far as a name or the turns of a chat show which.

    ``turns`` are the messages of the span's events, ``workflow`` is the name of the workflow that it says it is.
    """

    def __init__(self, raw: RawSpan, span: Span, there: Sequence[NamedValue]) -> None:
        if kinds.stated(span.name) is SpanKind.TOOL:
            there = [_called_function(source) for source in there]
        self.raw, self.span, self.workflow = raw, span, _workflow(there)
        self.sources = [each for each in there if each.meaning != "agent" or each.value != self.workflow]
        self._by_meaning: dict[Meaning | None, list[NamedValue]] = {}
        for source in self.sources:
            self._by_meaning.setdefault(source.meaning, []).append(source)
        self.ins: list[Candidate] = []
        self.outs: list[Candidate] = []
        self.turns: tuple[Message, ...] = turns(raw) if raw.events else ()
        self._sort()

    def of(self, *meanings: Meaning) -> Sequence[NamedValue]:
        """The sources of these meanings."""
        if len(meanings) == 1:
            return self._by_meaning.get(meanings[0], ())
        return [source for source in self.sources if source.meaning in meanings]

    def text(self, *meanings: Meaning) -> tuple[str, str] | None:
        """A short text of an attribute of these meanings, and its source; several that differ give none."""
        for meaning in meanings:
            if not (there := self.of(meaning)):
                continue
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

    def error(self, *, worded: bool = False) -> tuple[str, str] | None:
        """The first error that an attribute states, however long, and its source; ``worded``: its name says error."""
        for source in self.of("error"):
            stated = source.value.strip().strip('"') if source.attribute and isinstance(source.value, str) else ""
            if (
                not is_no_error(stated)
                and not values.is_blank(stated)
                and (not worded or "error" in words(source.name))
            ):
                return stated[:LONGEST_ERROR], source.name
        return None

    def _sort(self) -> None:
        """The sources that are inputs and outputs: by their names, and for chats by the last speaker."""
        if any(m.text and m.role != "tool" for m in self.turns) or (self.turns and self.span.kind is SpanKind.LLM):
            self._sort_chat(TURNS, Seen(value=None, read=None, messages=self.turns))
        declined = set(self.span.provenance.values())  # what the dialect looked at and took nothing from
        for source in self.sources:
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
                self.ins.append((source, seen))
            elif source.meaning == "output":
                self.outs.append((source, seen))

    def _sort_chat(self, source: NamedValue, seen: Seen) -> None:
        """Split a chat that ends with the model's turns: those turns came out, everything before them came in."""
        stated = seen.messages
        answered = len(stated)
        while answered and stated[answered - 1].role == "assistant":
            answered -= 1
        if source.meaning == "input":
            self.ins.append((source, seen))
        elif source.meaning == "output":
            last = max((i for i, m in enumerate(stated) if m.role == "user"), default=-1)
            if any(message.role == "assistant" for message in stated[last + 1 :]):
                self.outs.append((source, replace(seen, messages=stated[last + 1 :])))
            else:
                self.ins.append((source, seen))
        else:
            if answered:
                self.ins.append((source, replace(seen, messages=stated[:answered])))
            if answered < len(stated):
                self.outs.append((source, replace(seen, messages=stated[answered:])))

    def best(self, among: Sequence[Candidate], *, chats: bool = False) -> Candidate | None:
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
            elif best[1].read != other[1].read:
                return None
        return best

    def usage(self, kind: SpanKind) -> tuple[Usage, str] | None:
        """The tokens of a span of this kind, and their source."""
        there = self.of("usage")
        counted = [(source.name, source.value) for source in there if isinstance(source.value, int | float | str)]
        if (found := counts.by_words(counted)) is not None:
            return found, ", ".join(name for name, _ in counted[:4])
        for source in there:
            held = values.unwrapped(unwrap.decoded(source.value))
            if isinstance(held, dict) and (found := counts.of_map(held)) is not None:
                return found, source.name
        if kind is SpanKind.AGENT:
            return None  # the messages of its run hold the tokens of some of its calls
        for source, seen in self.outs:
            if (found := counts.in_body(seen.read)) is not None:
                return found, source.name
        return None

    def awaited(self) -> tuple[ToolCall, str] | None:
        """The call of a tool that a run ended before, because a person is to consent to it."""
        for source in self.of("output"):
            if (held := unwrap.unanswered(source.value)) and isinstance(name := held.get("toolName"), str):
                return ToolCall(name=name, call_id=unwrap.as_text(held.get("toolCallId"))), source.name
        return None

    def own_name(self) -> tuple[str, str] | None:
        """A part of the span's name that an attribute calls a name: ``research`` of ``run research``."""
        held = {
            source.value: source.name
            for source in reversed(self.of("own_name"))
            if isinstance(source.value, str) and 2 < len(source.value) < len(self.span.name)
            and NAME.fullmatch(source.value) and source.value in self.span.name
            and _RUNNING.issuperset(words(self.span.name.replace(source.value, "", 1)))
        }  # fmt: skip
        return next(iter(held.items())) if len(held) == 1 else None

    def tool_name(self) -> tuple[str, str] | None:
        """The tool by its attribute or by the span's name; None for a span that is called after tools in general."""
        if named := self.text("tool", "name") or self.own_name():
            return named
        if (called := self.called()) is not None:
            return called[0].name, called[1]
        span_name = self.span.name
        if (name := kinds.tool_name(span_name)) is None and "tool" not in words(span_name):
            name = kinds.called(span_name) or span_name
        return None if name is None or says_that_it_ran(name) else (name, "span name")

    def called(self) -> tuple[ToolCall, str] | None:
        """The one call of a tool that an attribute holds whole: ``{"name": "lookup", "arguments": {…}}``."""
        found: list[tuple[ToolCall, str]] = []
        for source in self.sources:
            if not _OF_A_CALL.isdisjoint(words(source.name)) and source.meaning not in ("input", "output"):
                held = unwrap.decoded(source.value)
                if values.is_call(held) and (calls := messages.calls([held])):
                    found.append((calls[0], source.name))
        own = {self.span.name, kinds.tool_name(self.span.name), (self.text("tool") or ("",))[0]}
        found += [
            (call, TURNS.name) for message in self.turns for call in message.tool_calls
            if self.span.kind is SpanKind.TOOL or call.name in own
        ]  # fmt: skip
        return found[0] if len(found) == 1 else None

    def arguments(self) -> tuple[Json, str] | None:
        """A tool's arguments, and their source."""
        tool, called = self.span.tool, self.called()
        if called is not None and (tool is None or called[0].name == tool.name):
            return called[0].arguments, called[1]
        given = [(source, seen) for source, seen in self.ins if not seen.messages]
        if (found := self.best(given)) is not None:
            return self._of_request(unwrap.arguments(found[1].value)), found[0].name
        lone = {
            seen.messages[0].text: source.name
            for source, seen in self.ins if source.meaning != "output" and is_said_once(source, seen)
        }  # fmt: skip
        if len(lone) == 1 and isinstance(held := unwrap.arguments(next(iter(lone))), dict):
            return held, next(iter(lone.values()))
        for source in self.of("parameters"):
            held = self._of_request(unwrap.arguments(source.value))
            if isinstance(held, dict) and "properties" not in held and held != {"type": "object"}:
                return held, source.name
        return None

    def _of_request(self, given: Json) -> Json:
        """The arguments in a request of the span's tool, ``{"name": "lookup", "arguments": {…}}``; else all."""
        held = given.get("params", given) if isinstance(given, dict) else None
        if not isinstance(held, dict) or not held.keys() <= _OF_A_REQUEST or "arguments" not in held:
            return given
        own = {self.span.tool and self.span.tool.name, (self.text("tool") or ("",))[0]}
        return unwrap.arguments(held["arguments"]) if held.get("name", held.get("tool_name")) in own else given


def is_said_once(source: NamedValue, seen: Seen) -> bool:
    """Whether one message holds what a tool was given or returned: it is the tool's, or stands in an event.

    AWS's distribution makes messages of what any step was given.
    """
    return len(seen.messages) == 1 and (not source.attribute or seen.messages[0].role == "tool")


def says_that_it_ran(name: str) -> bool:
    """Whether a span's name says that something ran, and not what: ``agent.run``, ``step``."""
    said = words(name)
    return bool(said) and _RUNNING.issuperset(said) and name.isascii() and not any(map(str.isdecimal, name))


def _tools(found: Mapping[str, str]) -> dict[str, str]:
    """Tool names: general words for tools are left out, and ``mcp__server__lookup`` and ``lookup`` become one."""
    named = {name: held for name, held in found.items() if kinds.stated(name) is None and name != MERGED_TOOLS}
    return {
        name: source for name, source in named.items()
        if not any(name != other and name.endswith(f"__{other}") for other in named)
    }  # fmt: skip


def _called_function(source: NamedValue) -> NamedValue:
    """A function's name on a span that is called a call of one: the tool, and no function of the program."""
    named = source.meaning is None and words(source.name)[-2:] == ("function", "name")
    return replace(source, meaning="tool") if named else source


def _workflow(there: Sequence[NamedValue]) -> AttributeValue:
    """The name of the workflow that a span states, against its stated kind; None for another span."""
    if not any(source.meaning == "kind" and kinds.stated(source.value) is SpanKind.CHAIN for source in there):
        return None
    return next((source.value for source in there if words(source.name)[-2:] == ("workflow", "name")), None)


def _claim(pair: Candidate, *, chats: bool) -> tuple[bool, bool, int]:
    source, seen = pair
    return chats and bool(seen.messages), source.attribute, source.directness


def plain(source: NamedValue, among: frozenset[str]) -> bool:
    """Whether a source is called by one of these words."""
    return not among.isdisjoint(words(source.name))


def in_words(seen: Seen, peeled: Callable[[Json], Json]) -> bool:
    """Whether a value is a text, and no data that a step of any program takes and returns."""
    if seen.messages or values.asked(seen.read) is not None:
        return True
    value = peeled(seen.value)
    return isinstance(value, str) and not isinstance(unwrap.decoded(value), dict | list)


def unnested(value: Json) -> Json:
    """``[{"document": {…}}]`` as ``[{…}]``: so lists come that are spread over keys."""
    if isinstance(value, list):
        return [next(iter(item.values())) if isinstance(item, dict) and len(item) == 1 else item for item in value]
    return value
