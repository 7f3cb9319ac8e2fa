"""Batching: which questions travel together. All, where prompt and answers fit; else as few groups as filling gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence

from sidejudge.scoring.lexical.token_estimate import estimate
from sidejudge.scoring.questions.question import NoAnswer, Question
from sidejudge.scoring.result.reason import Reason

from . import layout
from .form import Form
from .layout import form_for
from .prompt import prompt
from .shown import PromptMaterial

MAX_ANSWER_TOKENS = 8192
"""Tokens of answers that one request asks for at most: what current models write in one go."""
OVERHEAD = 64
"""Tokens of roles and separators, which providers add."""
_HEADINGS = 50
"""Tokens of what stands around parts and questions."""
_BREAK = "\n\n"
_ID = "q0000-000000"


class Batching:
    """The questions about one case, measured before anything is written; each once."""

    def __init__(self, shown: PromptMaterial, context_tokens: int) -> None:
        self._shown = shown
        self._context = context_tokens
        self._measured: dict[Hashable, int] = {}

    def groups(self, questions: list[Question], refused: dict[Question, NoAnswer]) -> list[list[Question]]:
        """The questions in groups, alike ones side by side; one for which the context is too small is ``refused``."""
        if not questions or self.fits(questions):
            return [questions] if questions else []
        groups: list[list[Question]] = []
        for question in sorted(questions, key=lambda each: form_for(each).parts):
            if groups and self.fits([*groups[-1], question]):
                groups[-1].append(question)
            elif self.fits([question]):
                groups.append([question])
            else:
                refused[question] = self.refusal(question)
        return groups

    def fits(self, group: Sequence[Question]) -> bool:
        """Whether these questions may travel together."""
        too_many = len(group) > 1 and sum(map(self._answer, group)) > MAX_ANSWER_TOKENS
        return not too_many and self._needed(group) <= self._context

    def refusal(self, question: Question) -> NoAnswer:
        """Why a question cannot be asked."""
        needed = self._needed([question])
        return NoAnswer(
            Reason(
                "takes some {needed} tokens, more than the judge's context of {most}", needed=needed, most=self._context
            )
        )

    def answer_tokens(self, group: Sequence[Question]) -> int:
        """Tokens of the answers, at most."""
        return min(sum(map(self._answer, group)), MAX_ANSWER_TOKENS)

    def _needed(self, group: Sequence[Question]) -> int:
        """Tokens of prompt and answers. A text that is shown once and asked about twice counts twice."""
        forms = tuple({form.metric: form for form in map(form_for, group)}.values())
        files = forms[0].files if forms[0].alone else layout.files(forms)
        tokens = OVERHEAD + _HEADINGS + sum(self._file(name) for name in files) + self._schema(forms)
        tokens += sum(self._shown.tokens(name) + estimate(_BREAK) for name in layout.parts(forms))
        return tokens + sum(map(self._question, group)) + self.answer_tokens(group)

    def _answer(self, question: Question) -> int:
        return form_for(question).tokens(self._question(question))

    def _file(self, name: str) -> int:
        return self._measure(name, lambda: prompt(name) + _BREAK)

    def _schema(self, forms: Iterable[Form]) -> int:
        return self._measure(tuple(form.metric for form in forms), lambda: json.dumps(layout.schema(forms)))

    def _question(self, question: Question) -> int:
        return self._measure(
            question, lambda: _BREAK.join(["", *layout.requested([_ID], [question]), *layout.emphasis([question])])
        )

    def _measure(self, key: Hashable, write: Callable[[], str]) -> int:
        if key not in self._measured:
            self._measured[key] = estimate(write())
        return self._measured[key]
