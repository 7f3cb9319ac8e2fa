"""The canonical definitions of seed 001: nine metrics in four tiers, and what each score means.

One table: the rubric ``agent``, its prompt and ``GET /config/available-metrics`` are all read from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

MAX_SCORE = 5
ACCEPTABLE_SCORE = 4
"""From here up a metric is acceptable or better: no failure code, no turns (rubrics §8)."""


class Tier(StrEnum):
    """What a metric looks at."""

    EXECUTION = "execution"
    """Did the agent use the right tools correctly?"""
    KNOWLEDGE = "knowledge"
    """Did the agent stay grounded and follow rules?"""
    PROCESS = "process"
    """Did the agent manage the conversation well?"""
    DELIVERY = "delivery"
    """Was the response natural and TTS-friendly?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A metric as the seed defines it. ``levels`` are the criteria of its scores, best first.

    A metric that is not among the defaults has to be selected, and then with a weight.
    """

    name: str
    display_name: str
    tier: Tier
    default_weight: float
    description: str
    levels: tuple[tuple[str, str], ...]
    score_type: Literal["scored", "binary"] = "scored"
    include_in_defaults: bool = True

    @property
    def rubric(self) -> str:
        """The scores and their criteria, a line each."""
        return "\n".join(f"{score}: {criteria}" for score, criteria in self.levels)

    def to_json(self) -> dict[str, object]:
        """The definition in the shape of the seed's endpoint."""
        return {
            "name": self.name,
            "display_name": self.display_name,
            "description": self.description,
            "tier": self.tier.value,
            "default_weight": self.default_weight,
            "score_type": self.score_type,
            "rubric": self.rubric,
            "include_in_defaults": self.include_in_defaults,
        }


def _from_five_to_zero(*criteria: str) -> tuple[tuple[str, str], ...]:
    return tuple((str(MAX_SCORE - index), text) for index, text in enumerate(criteria))


_TABLE = (
    Definition(
        name="tool_routing",
        display_name="Tool Routing",
        tier=Tier.EXECUTION,
        default_weight=0.15,
        description="Correct tool names and call sequence.",
        levels=_from_five_to_zero(
            "All expected tools called in correct sequence. No unnecessary calls.",
            "All critical tools called. Minor sequence deviation or one redundant call.",
            "One expected tool missed OR one wrong tool called, but core flow mostly intact.",
            "Multiple tool errors. Flow significantly impacted but partially functional.",
            "Most tool calls incorrect or missing. Only 1 of N expected tools called.",
            "No tools called when required, or entirely wrong tool set used.",
        ),
    ),
    Definition(
        name="parameter_extraction",
        display_name="Parameter Extraction",
        tier=Tier.EXECUTION,
        default_weight=0.15,
        description="Argument values correctly extracted from conversation for tools.",
        levels=_from_five_to_zero(
            "All parameters correct. Values accurately extracted from user input.",
            "All critical parameters correct. One minor parameter slightly off.",
            "One critical parameter wrong or missing, affecting tool outcome.",
            "Multiple parameter errors. Tool may have returned wrong results or failed.",
            "Most parameters fabricated or missing. Values not grounded in conversation.",
            "No parameters extracted from conversation. All values fabricated or empty.",
        ),
    ),
    Definition(
        name="result_interpretation",
        display_name="Result Interpretation",
        tier=Tier.EXECUTION,
        default_weight=0.15,
        description="Tool output accurately reflected in agent response.",
        levels=_from_five_to_zero(
            "Tool output accurately and completely reflected. Errors handled gracefully.",
            "Tool output mostly accurate. Minor omission that doesn't mislead user.",
            "One meaningful inaccuracy in conveying tool results.",
            "Significant misrepresentation of tool output.",
            "Tool output largely ignored or contradicted.",
            "Tool output completely ignored. No connection to what the tool returned.",
        ),
    ),
    Definition(
        name="grounding_fidelity",
        display_name="Grounding Fidelity",
        tier=Tier.KNOWLEDGE,
        default_weight=0.125,
        description="Every agent claim traceable to context, tools, or business rules.",
        levels=_from_five_to_zero(
            "Every specific claim grounded. Appropriate hedging for uncertain info.",
            "All critical claims grounded. One minor unverifiable statement.",
            "One meaningful ungrounded claim that could mislead user.",
            "Multiple ungrounded claims. Mix of fabricated facts and invented policies.",
            "Most claims ungrounded. Agent is largely confabulating.",
            "Response is entirely fabricated with no connection to provided context.",
        ),
    ),
    Definition(
        name="instruction_compliance",
        display_name="Instruction Compliance",
        tier=Tier.KNOWLEDGE,
        default_weight=0.125,
        description="Agent follows explicit rules from system prompt and business rules.",
        levels=_from_five_to_zero(
            "All instructions followed precisely. Stayed within role/scope.",
            "All critical instructions followed. One minor deviation.",
            "One meaningful instruction violated. Core functionality intact.",
            "Multiple instructions violated. Partially outside defined boundaries.",
            "Most instructions ignored. Largely operating outside its defined role.",
            "Agent completely disregards system prompt and business rules.",
        ),
    ),
    Definition(
        name="information_gathering",
        display_name="Information Gathering",
        tier=Tier.PROCESS,
        default_weight=0.10,
        description="Required info collected before action; previously stated info reused.",
        levels=_from_five_to_zero(
            "All required info collected before action. No redundant questions.",
            "All critical info collected. One redundant question or minor missed detail.",
            "One required field missing before action, or forgot one previously stated detail.",
            "Multiple gaps in info collection. Acted on incomplete data.",
            "Most required info not collected. Acted with largely incomplete data.",
            "No info gathering attempted.",
        ),
    ),
    Definition(
        name="conversation_management",
        display_name="Conversation Management",
        tier=Tier.PROCESS,
        default_weight=0.10,
        description="Ambiguity handling, error recovery, and conversation closure.",
        levels=_from_five_to_zero(
            "Ambiguity clarified. Errors acknowledged and corrected. Proper goodbye.",
            "Good management overall. One minor missed opportunity.",
            "One meaningful management failure.",
            "Multiple management failures. Conversation disjointed.",
            "Conversation poorly managed throughout.",
            "No conversation management. Agent froze or produced incoherent sequence.",
        ),
    ),
    Definition(
        name="response_delivery",
        display_name="Response Delivery",
        tier=Tier.DELIVERY,
        default_weight=0.10,
        description="Concise, natural, TTS-friendly, non-repetitive responses.",
        levels=_from_five_to_zero(
            "All responses concise. Natural phrasing. No TTS-hostile formatting.",
            "Mostly natural and concise. One minor issue.",
            "One meaningful delivery issue (e.g. 2+ questions in one turn).",
            "Multiple delivery issues. Robotic or verbose.",
            "Pervasive delivery problems.",
            "Responses entirely unsuitable for voice delivery.",
        ),
    ),
    Definition(
        name="task_completion",
        display_name="Task Completion",
        tier=Tier.EXECUTION,
        default_weight=0.0,
        description="Whether the agent completed the primary task from expected_outcomes.",
        levels=(
            ("pass", "The agent completed the primary task from expected_outcomes."),
            ("fail", "The agent did not complete it."),
        ),
        score_type="binary",
        include_in_defaults=False,
    ),
)

DEFINITIONS: Mapping[str, Definition] = MappingProxyType({definition.name: definition for definition in _TABLE})
"""Every metric by its id, in the seed's order."""


def available_metrics() -> dict[str, object]:
    """All registered metrics, opt-in included, in the seed's shape: ``{"data": [...], "count": 9}``."""
    return {"data": [definition.to_json() for definition in DEFINITIONS.values()], "count": len(DEFINITIONS)}
