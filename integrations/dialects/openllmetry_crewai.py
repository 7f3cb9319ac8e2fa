"""Where CrewAI bends OpenLLMetry: crews and tasks call themselves agents, and are reported under keys of their own.

What a task was and what came of it stand on the task's span and, printed, on the crew's; an agent's span has neither.
"""

from __future__ import annotations

from sidejudge.scoring.trace.span import SpanKind

from . import unwrap
from .reading import SpanReading, as_text
from .span_fields import SpanFields

_RESULT, _TASKS_DONE, _TASKS = "crewai.crew.result", "crewai.crew.tasks_output", "crewai.crew.tasks"


def adapt(reading: SpanReading, kind: SpanKind, fields: SpanFields) -> SpanKind:
    """Correct ``fields`` in place, and return the span's true kind."""
    if _TASKS in reading.attributes or _RESULT in reading.attributes:
        _no_agent(reading, fields)
        fields["output"] = unwrap.answer(reading.value("output", _RESULT))
        # As they were carried out before as they were written: inputs of the crew are filled into them.
        for key in (_TASKS_DONE, _TASKS):
            tasks = unwrap.decoded(reading.attributes.get(key))
            first = tasks[0] if isinstance(tasks, list) and tasks else None
            if isinstance(first, dict) and (described := as_text(first.get("description"))):
                fields["input"] = described
                reading.note("input", f"{key}: description")
                break
        return SpanKind.CHAIN
    if kind is SpanKind.AGENT:
        fields["agent"] = reading.text("agent", "gen_ai.agent.name", "crewai.agent.role")
        fields["agent"] = fields["agent"] or reading.raw.name.removesuffix(".agent")
    elif kind is SpanKind.CHAIN:
        _no_agent(reading, fields)
        fields["input"] = reading.text("input", "crewai.task.description")
        fields["output"] = unwrap.answer(reading.value("output", "traceloop.entity.output"))
    return kind


def _no_agent(reading: SpanReading, fields: SpanFields) -> None:
    fields["agent"] = None
    reading.provenance.pop("agent", None)
