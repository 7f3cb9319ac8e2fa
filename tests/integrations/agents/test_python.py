"""A Python callable as an agent: plain, asynchronous, an object, one that raises, one that never returns."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from sidejudge.integrations.agents import AgentError, NoSuchAgentError, Request
from sidejudge.integrations.agents.python import MAX_ABANDONED, PythonAgent

MODULE = """
import asyncio, sys, threading
gate = threading.Event()
not_callable = 3

def plain(given): return f"plain {given}"
async def later(given):
    await asyncio.sleep(0)
    return {"output": f"later {given}"}
def returns_a_coroutine(given): return later(given)
def raises(given): raise ValueError("no such thing")
async def raises_later(given): raise KeyError(given)
def leaves(given): sys.exit(3)
def interrupts(given): raise KeyboardInterrupt
def stops(given): raise StopIteration
async def cancels_itself(given): raise asyncio.CancelledError
def hangs(given): gate.wait(30)
def thread_name(given): return threading.current_thread().name
class Runs:
    def run(self, given): return f"ran {given}"
agent = Runs()
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A fresh module in the working directory, named after the test's folder."""
    name = f"bot_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / f"{name}_broken.py").write_text("import nothing_of_this_name")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield name
    sys.modules.pop(name, None)


async def ask(agent: PythonAgent, given: object = "hi") -> object:
    async with agent:
        return (await agent.ask(Request(input=given, test_id="t", metadata={}))).stated


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("plain", "plain hi"),
        ("later", {"output": "later hi"}),
        ("returns_a_coroutine", {"output": "later hi"}),
        ("agent", "ran hi"),
        ("agent.run", "ran hi"),
    ],
)
async def test_functions_coroutines_and_objects_that_run_are_called_with_the_input(module, name, stated) -> None:
    assert await ask(PythonAgent(f"python:{module}:{name}")) == stated


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raises", "it raised ValueError: no such thing"),
        ("raises_later", "it raised KeyError: 'hi'"),
        ("leaves", "it raised SystemExit: 3"),
        ("interrupts", "it raised KeyboardInterrupt: "),
        ("stops", "it raised StopIteration: "),
        ("cancels_itself", "it raised CancelledError: "),
    ],
)
async def test_whatever_a_callable_raises_costs_this_call_only(module, name, reason) -> None:
    with pytest.raises(AgentError) as reported:
        await ask(PythonAgent(f"python:{module}:{name}"))
    assert reported.value.reason == reason
    assert not reported.value.unreachable


async def test_a_plain_function_does_not_run_in_the_event_loops_thread(module) -> None:
    assert await ask(PythonAgent(f"python:{module}:thread_name")) != threading.current_thread().name


async def test_calls_that_never_return_are_left_behind_and_so_many_only(module) -> None:
    agent = PythonAgent(f"python:{module}:hangs")
    request = Request(input="x", test_id="t", metadata={})

    async def one() -> None:
        async with asyncio.timeout(0.05):
            await agent.ask(request)

    done = await asyncio.gather(*(one() for _ in range(MAX_ABANDONED)), return_exceptions=True)
    assert {type(each) for each in done} == {TimeoutError}
    with pytest.raises(AgentError, match=f"not called: {MAX_ABANDONED} earlier calls have not returned"):
        await agent.ask(request)
    sys.modules[module].gate.set()
    async with asyncio.timeout(20):
        while agent._abandoned:  # noqa: ASYNC110  # what is waited for are threads
            await asyncio.sleep(0.01)
    assert (await agent.ask(request)).stated is None


@pytest.mark.parametrize(
    ("spec", "cause", "remedy"),
    [
        ("python:", "does not name a module and a function", "python:module:function"),
        ("python:json", "does not name a module and a function", "python:module:function"),
        ("python:no_such_module_anywhere:f", "there is no module 'no_such_module_anywhere'", "PYTHONPATH"),
        ("python:{module}_broken:f", "cannot be imported: ModuleNotFoundError: No module named 'nothing", "mend"),
        ("python:{module}:plian", "has no 'plian'; did you mean plain?", "python:module:function"),
        ("python:{module}:not_callable", "is int and cannot be called", "name a function"),
        ("python:{module}:Runs", "is a class", "an object with a method run"),
    ],
)
def test_what_cannot_be_called_is_refused_with_the_reason(module, spec, cause, remedy) -> None:
    with pytest.raises(NoSuchAgentError) as reported:
        PythonAgent(spec.format(module=module))
    assert cause in reported.value.cause
    assert remedy in reported.value.remedy
