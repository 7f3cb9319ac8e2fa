"""Probes of a judge model: why it cannot judge one plain question; and whether its provider answers at all.

The second is one short request that every model can answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sidejudge.integrations.judge.client import JudgeClient, JudgeModel
from sidejudge.integrations.provider.attempt import Completion
from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.judging.answers import AnswerReading
from sidejudge.scoring.judging.request import JudgeRequest, requests
from sidejudge.scoring.judging.shapes import SHAPES, Shape
from sidejudge.scoring.questions.kinds import SameFact

_CASE: Final = Case(case_id="probe", model_output="")
_QUESTION: Final = SameFact("The bridge was opened in 1932.", "The bridge was opened in 1923.")
_ENOUGH: Final = 32_000
_MORE: Final = "'sidejudge try-judge' asks more"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeProbe:
    """The result of one plain question to a model: why it cannot judge, None when it can, and its ``habits`` in words.

    ``accounted``: it states the tokens of its answer.
    """

    fault: str | None = None
    habits: tuple[str, ...] = ()
    accounted: bool = True


async def try_model(model: JudgeModel) -> JudgeProbe:
    """Ask the model a plain question in the form of every prompt.

    As in a monitor, the question is repeated once after an unreadable answer. No reason holds the key.
    """
    library = LiteLLM()
    client = JudgeClient(library)
    ((request,), _) = requests(_CASE, [_QUESTION], context_tokens=_ENOUGH)
    try:
        completion, reading = await _asked(client, request, model)
        if reading.faults:
            completion, reading = await _asked(client, request.again(reading.faults), model)
    except ProviderError as error:
        return JudgeProbe(fault=str(error))
    finally:
        await library.close()
    if (fault := reading.faults.get(_QUESTION)) is not None:
        return JudgeProbe(fault=f"answers, but not in the form that is asked for ({fault}); {_MORE}")
    if reading.answers[_QUESTION].value is not False:
        return JudgeProbe(fault=f"answers, but takes two different years for the same fact; {_MORE}")
    shapes: list[Shape] = [*reading.shapes, *(("tool_call",) if completion.tool_call else ()), *completion.shapes]
    accounted = bool(completion.usage.input_tokens and completion.usage.output_tokens)
    return JudgeProbe(habits=tuple(f"answers {SHAPES[shape]}" for shape in shapes), accounted=accounted)


async def _asked(client: JudgeClient, request: JudgeRequest, model: JudgeModel) -> tuple[Completion, AnswerReading]:
    try:
        completion = await client.complete(request, model)
    except ProviderError as error:
        if error.kind is not ProviderErrorKind.BAD_ANSWER:
            raise
        completion = await client.complete(request, model)  # as a monitor would
    return completion, request.read(completion.text)


HEALTH_PROBE: Final = JudgeRequest(
    messages=({"role": "user", "content": 'Answer with the JSON {"ready": true}.'},),
    schema={
        "type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"],
        "additionalProperties": False,
    },
    schema_name="ready", prompt_version="", questions=(), ids=(), prompt_tokens=32, answer_tokens=64,
)  # fmt: skip
"""It contains nothing of any trace, so that its result depends only on the provider."""
