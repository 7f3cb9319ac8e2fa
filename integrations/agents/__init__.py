"""Agents: the targets of a test set, over HTTP or in this process; here a request and its reply, over any transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sidejudge.scoring.errors import RemediedError, SidejudgeError
from sidejudge.scoring.trace.span import Json


@dataclass(slots=True, kw_only=True)
class Request:
    """One test for an agent: its input and id. ``metadata`` is the test's own, ``attempts`` how many have begun."""

    input: Json
    test_id: str
    metadata: Mapping[str, Json]
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReply:
    """The agent's reply, not yet parsed. ``latency_ms`` is the duration of the successful attempt."""

    stated: object
    latency_ms: float


class AgentError(SidejudgeError):
    """The agent gave no answer, and why. ``unreachable``: the request did not reach it."""

    def __init__(self, reason: str, *, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.unreachable = unreachable


class NoSuchAgentError(RemediedError):
    """The named object cannot be an agent."""
