"""Probe: a judge model in, why it cannot judge one plain question out."""

from __future__ import annotations

import asyncio
from typing import Final

from integrations.judge.client import JudgeClient, JudgeModel
from integrations.provider.errors import ProviderError
from integrations.provider.library import LiteLLM
from scoring.case.case import Case
from scoring.judging.request import AnswerReading, JudgeRequest, requests
from scoring.questions.benchmarks import SameFact

_CASE: Final = Case(case_id="probe", model_output="")
_QUESTION: Final = SameFact("The bridge was opened in 1932.", "The bridge was opened in 1923.")
_ENOUGH: Final = 32_000
_MORE: Final = "'sidejudge try-judge' asks more"


def try_model(model: JudgeModel) -> str | None:
    """Why the model cannot judge; None when it answers a plain question in the form of every prompt, and rightly.

    As in a monitor, an answer of another form is asked for once more. The key is never part of the reason.
    """
    return asyncio.run(_try(model))


async def _try(model: JudgeModel) -> str | None:
    library = LiteLLM()
    client = JudgeClient(library)
    ((request,), _) = requests(_CASE, [_QUESTION], context_tokens=_ENOUGH)
    try:
        reading = await _asked(client, request, model)
        if reading.faults:
            reading = await _asked(client, request.again(reading.faults), model)
    except ProviderError as error:
        return str(error)
    finally:
        await library.close()
    if (fault := reading.faults.get(_QUESTION)) is not None:
        return f"answers, but not in the form that is asked for ({fault}); {_MORE}"
    if reading.answers[_QUESTION].value is not False:
        return f"answers, but takes two different years for the same fact; {_MORE}"
    return None


async def _asked(client: JudgeClient, request: JudgeRequest, model: JudgeModel) -> AnswerReading:
    return request.read((await client.complete(request, model)).text)
