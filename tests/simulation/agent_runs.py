"""Spans of one run of an agent as three instrumentations report them; what they report is made by a program.

A step is (kind, fields): kind is ``agent``, ``tool`` or ``llm``.
"""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from sidejudge.integrations.raw import RawSpan

TEXTS = yaml.safe_load(
    (Path(__file__).parents[1] / "scoring" / "metrics" / "data" / "tool_results.yaml").read_text(encoding="utf-8")
)
FAILED = [text for text in TEXTS["failed"] if isinstance(text, str)]
FINE = [text for text in TEXTS["fine"] if isinstance(text, str) and len(text) > 10]
TOOLS = ("search", "read_page", "calculate", "book")
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}, "page": {"type": "integer"}}, "required": ["q"]}
OFFER = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in TOOLS]


def genai(kind, step):
    operation = {"agent": "invoke_agent", "tool": "execute_tool", "llm": "chat"}[kind]
    found = {"gen_ai.operation.name": operation}
    if kind == "agent":
        found |= {"gen_ai.agent.name": step.get("name", "desk"),
                  "gen_ai.input.messages": _message("user", step["input"]),
                  "gen_ai.output.messages": _message("assistant", step["output"])}  # fmt: skip
    elif kind == "tool":
        found |= {"gen_ai.tool.name": step["name"], "gen_ai.tool.call.arguments": json.dumps(step["arguments"]),
                  "gen_ai.tool.call.result": step["result"]}  # fmt: skip
    else:
        parts = [{"type": "text", "content": step["text"]}] if step["text"] else []
        parts += [{"type": "tool_call", "name": n, "arguments": a} for n, a in step["calls"]]
        found |= {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 50, "gen_ai.usage.output_tokens": 5,
                  "gen_ai.response.finish_reasons": [step["finish"]], "gen_ai.tool.definitions": json.dumps(OFFER),
                  "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}])}  # fmt: skip
    return found


def _message(role, text):
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}] if text else [])


def openinference(kind, step):
    found = {"openinference.span.kind": kind.upper()}
    if kind == "agent":
        found |= {"agent.name": step.get("name", "desk"), "input.value": step["input"], "output.value": step["output"]}
    elif kind == "tool":
        found |= {"tool.name": step["name"], "input.value": json.dumps(step["arguments"]),
                  "input.mime_type": "application/json", "output.value": step["result"]}  # fmt: skip
    else:
        out = "llm.output_messages.0.message"
        found |= {
            "llm.model_name": "m",
            "llm.token_count.prompt": 50,
            "llm.token_count.completion": 5,
            f"{out}.role": "assistant",
            f"{out}.content": step["text"],
            f"{out}.finish_reason": step["finish"],
        }
        found |= {f"llm.tools.{n}.tool.json_schema": json.dumps(tool) for n, tool in enumerate(OFFER)}
        for n, (name, arguments) in enumerate(step["calls"]):
            found |= {f"{out}.tool_calls.{n}.tool_call.function.name": name,
                      f"{out}.tool_calls.{n}.tool_call.function.arguments": json.dumps(arguments)}  # fmt: skip
    return found


def openllmetry(kind, step):
    if kind == "llm":
        found = {
            "llm.request.type": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.usage.prompt_tokens": 50,
            "gen_ai.usage.completion_tokens": 5,
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": step["text"],
            "gen_ai.completion.0.finish_reason": step["finish"],
        }
        for n, name in enumerate(TOOLS):
            found |= {
                f"llm.request.functions.{n}.name": name,
                f"llm.request.functions.{n}.parameters": json.dumps(SCHEMA),
            }
        for n, (name, arguments) in enumerate(step["calls"]):
            found |= {f"gen_ai.completion.0.tool_calls.{n}.name": name,
                      f"gen_ai.completion.0.tool_calls.{n}.arguments": json.dumps(arguments)}  # fmt: skip
        return found
    found = {"traceloop.span.kind": kind, "traceloop.entity.name": step.get("name", "desk")}
    given = step["arguments"] if kind == "tool" else step["input"]
    found |= {"traceloop.entity.input": json.dumps(given)}
    if (out := step["result"] if kind == "tool" else step["output"]) not in (None, ""):
        found |= {"traceloop.entity.output": json.dumps(out)}
    return found


DIALECTS = (genai, openinference, openllmetry)


def spans_of(steps, dialect, number):
    """Steps as spans, one after the other; one with ``beside`` begins with the one before it."""
    ns, began = 10**9, 0
    for at, (kind, step, _) in enumerate(steps):
        own = step.get("name", "desk")
        name = {"agent": f"invoke_agent {own}", "llm": "chat m", "tool": own}[kind]
        began = began if step.get("beside") else at
        yield RawSpan(
            trace_id=f"{number + 1:032x}", span_id=f"{at + 1:016x}", parent_id=f"{1:016x}" if at else None, name=name,
            start_ns=ns + began * 10**6, end_ns=ns + (10**10 if not at else at * 10**6 + 10**5),
            attributes={key: value for key, value in dialect(kind, step).items() if value is not None},
            resource={"service.name": "desk"}, status_code=2 if step.get("error") else 0,
            status_message=step.get("error") or "",
        )  # fmt: skip
