"""Prompt schemas: the part of the API's JSON about questions that lie in Langfuse's prompt management."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .response_body import ResponseBody, Text


class PromptBody(ResponseBody):
    """A prompt of Langfuse that a question is asked with."""

    name: Text
    requested: Text = Field(description="its label or version as configured")
    used: str | None = Field(description="the version in use; null: none could ever be read")
    state: Literal["read", "fallback", "missing"] = Field(
        description="`fallback`: the one read last is used; `missing`: there is none, its metric is unavailable"
    )
    reason: Text = Field(description="why it cannot be read now; empty when it can")
