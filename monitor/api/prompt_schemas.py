"""Prompt schemas: the part of the API's JSON about questions that lie in Langfuse's prompt management."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from scoring.lexical.label import label
from scoring.status.prompt_snapshot import PromptSnapshot


class PromptBody(BaseModel):
    """A prompt of Langfuse that a question is asked with."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    requested: str = Field(description="its label or version as configured")
    used: str | None = Field(description="the version in use; null: none could ever be read")
    state: Literal["read", "fallback", "missing"] = Field(
        description="`fallback`: the one read last is used; `missing`: there is none, its metric is unavailable"
    )
    reason: str = Field(description="why it cannot be read now; empty when it can")

    @classmethod
    def of(cls, prompt: PromptSnapshot) -> PromptBody:
        return cls(
            name=label(prompt.name, 200), requested=label(prompt.requested, 200), used=prompt.used, state=prompt.state,
            reason=label(prompt.reason, 300),
        )  # fmt: skip
