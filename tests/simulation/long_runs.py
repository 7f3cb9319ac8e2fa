"""Long runs of agents with known errors, as three instrumentations report them, up to millions of tokens.

A lead divides a task among helpers; each calls tools with long results, notes what it found, and reports; the lead
answers. A program makes the run and knows which steps go wrong, and whether the answer suffers from it (high impact).
``history`` is how many earlier messages each model call carries again, as agents that keep a window do; ``talk`` is
how much models say, as a multiple.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.trace import Trace
from tests.simulation.agent_runs import DIALECTS, FAILED

HIGH = (
    "misread", "invented", "swapped", "tool_failure", "plan", "loop", "wrong_argument", "lost_report", "wrong_tool",
    "stopped_early",
)  # fmt: skip
"""Errors from which the answer suffers."""
LOW = ("slip", "detour", "retry")
_WORDS = (
    "harbour ledger quarter tonnage berth cargo captain schedule invoice freight carrier demand volume margin region",
    "season pilot crane manifest tariff customs depot storage convoy insurance surcharge quota ballast draft charter",
)
_WORDS = " ".join(_WORDS).split()
_NAMES = (
    "Aurora Borealis Castor Dorado Electra Fornax Gemini Hydra Indus Juno Kepler Lyra Mensa Norma Orion",
    "Pavo Quasar Rigel Sirius Tucana Ursa Vega Wezen Xanadu Ymir Zephyr",
)
_NAMES = " ".join(_NAMES).split()
TOOLS = ("search", "read_page", "calculate", "book")


@dataclass
class Run:
    """Steps under way: (kind, agent, fields); ``wrong`` are the indices of those that go wrong, with the impact."""

    dice: random.Random
    talk: float = 1.0
    steps: list = field(default_factory=list)
    wrong: dict = field(default_factory=dict)

    def prose(self, words):
        return " ".join(self.dice.choice(_WORDS) for _ in range(words))

    def thoughts(self, words):
        return self.prose(max(1, int(words * self.talk * self.dice.lognormvariate(0, 0.5))))

    def add(self, kind, agent, impact=None, **fields):
        if impact:
            self.wrong[len(self.steps)] = impact
        self.steps.append((kind, agent, fields))


def long_run(seed, sections, row_words, faults, talk=1.0):  # noqa: C901, PLR0915  # one branch an error
    """A run of so many sections, each with an error of ``faults`` or None."""
    run = Run(random.Random(seed), talk)
    dice = run.dice
    ships = [f"{name} {number}" for number in range(1 + sections // len(_NAMES)) for name in _NAMES][:sections]
    plan_fault = "plan" in faults
    asked = f"Report the tonnage of {', '.join(ships[:12])} and all others of the list, without those in dock."
    run.add("agent", 0, input=asked, output="")
    run.add("llm", 0, "high" if plan_fault else None, calls=[],
            text=f"Plan: ask the helpers for each ship, one after the other. {run.thoughts(40)}")  # fmt: skip
    answers = []
    for number, (ship, fault) in enumerate(zip(ships, faults, strict=True)):
        agent = number + 1
        value = dice.randrange(10**4, 10**6)
        key = f"reg-{dice.randrange(10**5)}"
        run.add("agent", agent, input=f"Find the tonnage of {ship}, register {key}.", output="")
        at = len(run.steps) - 1
        if fault == "loop":
            for turn in range(4):
                run.add("llm", agent, "high" if turn == 1 else None, text="", calls=[("search", {"q": f"{ship} page"})])
                run.add("tool", agent, name="search", arguments={"q": f"{ship} page"}, result="nothing new on it")
        for look in range(dice.randrange(1, 4)):
            argument = {"q": f"{ship} {dice.choice(_WORDS)}", "page": look}
            run.add("llm", agent, text=run.thoughts(12), calls=[("read_page", argument)])
            run.add("tool", agent, name="read_page", arguments=argument,
                    result=f"{ship}: {run.prose(row_words)} {dice.randrange(10**3)}")  # fmt: skip
        if fault == "detour":
            run.add("llm", agent, "low", text=run.thoughts(20), calls=[("search", {"q": "weather"})])
            run.add("tool", agent, name="search", arguments={"q": "weather"}, result=run.prose(row_words))
        if fault == "retry":
            run.add("llm", agent, text="", calls=[("book", {"q": key})])
            run.add("tool", agent, "low", name="book", arguments={"q": key}, result=dice.choice(FAILED))
        asks = f"reg-{dice.randrange(10**5)}" if fault == "wrong_argument" else key
        tool = "search" if fault == "wrong_tool" else "read_page"
        impact = "high" if fault in ("wrong_argument", "wrong_tool") else None
        run.add("llm", agent, impact, text=run.thoughts(8), calls=[(tool, {"q": asks, "page": 1})])
        held = (
            dice.choice(FAILED)
            if fault == "tool_failure"
            else f"{run.prose(row_words // 2)} {ship} {value} tons {run.prose(row_words // 2)}"
        )
        run.add("tool", agent, name=tool, arguments={"q": asks, "page": 1}, result=held)
        noted = value
        if fault == "misread":
            noted = int(str(value)[::-1])
        elif fault in ("invented", "tool_failure"):
            noted = dice.randrange(10**4, 10**6)
        ship_noted = dice.choice([each for each in ships if each != ship]) if fault == "swapped" else ship
        note = f"{run.thoughts(15)} The tonnage of {ship_noted} is {noted}. {run.thoughts(15)}"
        if fault == "stopped_early":
            note = f"{run.thoughts(15)} No tonnage of {ship} is needed, so this is done. {run.thoughts(15)}"
        bad = fault in ("misread", "invented", "swapped", "tool_failure", "stopped_early")
        run.add("llm", agent, "high" if bad else "low" if fault == "slip" else None, text=note, calls=[])
        run.steps[at][2]["output"] = note
        lost = fault == "lost_report"
        merged = f"{ship} is in dock. {run.thoughts(10)}" if lost else f"Noted: {note[-60:]} {run.thoughts(10)}"
        run.add("llm", 0, "high" if lost else None, text=merged, calls=[])
        if not lost and fault != "stopped_early":
            answers.append(f"{ship_noted}: {noted}")
    run.add("llm", 0, text="; ".join(answers) or "Nothing was found.", calls=[])
    run.steps[0][2]["output"] = run.steps[-1][2]["text"]
    return run


def trace_of(run, dialect, history):
    """The run as spans of one instrumentation, normalised."""
    said = {}
    spans = []
    at_agent = {}
    for at, (kind, agent, fields) in enumerate(run.steps):
        step = {"finish": "tool_calls" if fields.get("calls") else "stop", **fields}
        attributes = dialect(kind, step)
        messages = said.setdefault(agent, [])
        if kind == "agent":
            at_agent[agent] = at
            messages.append(("user", fields["input"]))
        elif kind == "tool":
            messages.append(("tool", fields["result"]))
        else:
            if history:
                attributes |= _history(dialect, messages[:1] + messages[1:][-history:])
            messages.append(("assistant", fields["text"]))
        parent = None if at == 0 else at_agent[0] if kind == "agent" else at_agent[agent]
        last = max(i for i, (_, of, _) in enumerate(run.steps) if of == agent) if kind == "agent" else at
        end = len(run.steps) if at == 0 else last
        spans.append(RawSpan(
            trace_id=f"{1:032x}", span_id=f"{at + 1:016x}", parent_id=None if parent is None else f"{parent + 1:016x}",
            name={"agent": f"invoke_agent helper {agent}", "llm": "chat m", "tool": step.get("name", "")}[kind],
            start_ns=10**9 + at * 10**6, end_ns=10**9 + end * 10**6 + 10**5,
            attributes={key: value for key, value in attributes.items() if value is not None},
            resource={"service.name": "desk"}, status_code=0, status_message="",
        ))  # fmt: skip
    return Trace.of(f"{1:032x}", [normalise(raw) for raw in spans], "batch")


def _history(dialect, messages):
    if dialect is DIALECTS[0]:
        listed = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
        return {"gen_ai.input.messages": json.dumps(listed)}
    place = "llm.input_messages.{n}.message." if dialect is DIALECTS[1] else "gen_ai.prompt.{n}."
    return {place.format(n=n) + key: value for n, (role, text) in enumerate(messages)
            for key, value in (("role", role), ("content", text))}  # fmt: skip


def cases(seed, sections, row_words, share_of_faults=0.06, talk=1.0):
    """The run as three instrumentations report it: its case, and the impact of each span that goes wrong."""
    dice = random.Random(seed)
    count = max(2, int(share_of_faults * sections))
    at = dict.fromkeys(dice.sample(range(sections), min(sections, 2 * count)))
    kinds = iter([dice.choice(HIGH) for _ in range(count)] + [dice.choice(LOW) for _ in range(count)])
    faults = [next(kinds) if number in at else None for number in range(sections)]
    run = long_run(seed, sections, row_words, faults, talk)
    wrong = {f"{index + 1:016x}": impact for index, impact in run.wrong.items()}
    kind_of = [fault for fault in faults if fault]
    for dialect, history in zip(DIALECTS, (6, 0, 3), strict=True):
        yield dialect.__name__, extract(trace_of(run, dialect, history)), wrong, kind_of, run
