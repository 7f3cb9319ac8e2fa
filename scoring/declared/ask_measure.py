"""A declared question as a measure: it is asked about a case, and its answer becomes a value."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.judging.parts import part
from sidejudge.scoring.questions.kinds import AskDeclared
from sidejudge.scoring.questions.question import Answer, Begun, Steps
from sidejudge.scoring.questions.teaching import SHOWN
from sidejudge.scoring.result.reason import Reason, own
from sidejudge.scoring.result.result import Failed, NotApplicable, Scored, Unavailable

from .reading import is_number

_SHOWN: Final = 200
_BITS: Final = 2.0**-64


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredAsk:
    """A declared question: its text, and the value of an answer."""

    question: AskDeclared
    passes: tuple[str | bool, ...] = ()
    values: Mapping[str, float] | None = None
    rate: float = 1.0
    version: str = ""
    label: str = ""
    missing: str | None = None
    labelled: int = 0
    """Examples from people's labels that the question shows."""

    @property
    def binary(self) -> bool:
        """Whether its value is 1 or 0."""
        return self.question.kind == "boolean" or (self.question.kind == "one_of" and self.values is None)

    @property
    def bounds(self) -> tuple[float, float | None]:
        """The range of its value."""
        choices = self.question.choices
        match self.question.kind:
            case "scale":
                return float(choices[0]), float(choices[1])
            case "number":
                return (float(choices[0]), float(choices[1])) if choices else (0.0, None)
            case "findings":
                return 0.0, float(choices[0])
            case _:
                return 0.0, 1.0

    def measure(self, case: Case) -> Begun:
        """Ask, unless a part that the question names is unknown, or the case is not drawn for it."""
        if self.missing is not None:
            return Unavailable(self.missing)
        for name in self.question.parts:
            if part(case, name) is None:
                return Unavailable(Reason("{name} is not known", name=own(name)))
        if self.rate < 1.0 and not self.drawn(case):
            return NotApplicable(Reason("not drawn: the question is asked of a share of {rate:g}", rate=self.rate))
        return self._ask()

    def drawn(self, case: Case) -> bool:
        """Whether a case is in the share that is asked about; depends on its id alone, independent of the sampler."""
        seed = f"{self.question.metric}\x00{case.trace_id or case.case_id}"
        return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) * _BITS < self.rate

    def _ask(self) -> Steps:
        (reply,) = yield (self.question,)
        if not isinstance(reply, Answer):
            return Failed(reply.reason) if reply.failed else Unavailable(reply.reason)
        details: dict[str, object] = {"prompt": self.version} if self.version else {}
        if self.label:
            details["prompt_label"] = self.label
        if self.rate < 1.0:
            details["asked_of_a_share"] = self.rate
        if self.labelled:
            details[SHOWN] = self.labelled
        value = self._value(reply.value, details)
        judgements = (reply.judgement,) if reply.judgement is not None else ()
        return Scored(value=value, method=reply.method, reason=reply.reason, details=details, judgements=judgements)

    def _value(self, answer: object, details: dict[str, object]) -> float:
        """The value of an answer of the declared type; ``ValueError`` for any other."""
        kind = self.question.kind
        if kind == "boolean" and isinstance(answer, bool):
            return float(answer in (self.passes or (True,)))
        if kind == "one_of" and isinstance(answer, str):
            details["category"] = answer
            return self.values[answer] if self.values is not None else float(answer in self.passes)
        if kind == "findings" and isinstance(answer, tuple | list):
            details["findings"] = [str(each)[:_SHOWN] for each in answer]
            return float(len(answer))
        if kind in ("scale", "number") and is_number(answer):
            return float(answer)  # type: ignore[arg-type]  # a number, by the condition
        raise ValueError(f"an answer that is no {kind}")
