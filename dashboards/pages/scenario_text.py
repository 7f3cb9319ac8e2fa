"""Scenario text: what one run did, as a scenario that may be copied into a configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import yaml

from sidejudge.scoring.case.case import Case

_MOST = 30
"""Names of agents and tools that are listed."""


def scenario_text(case: Case) -> str:
    """The run as YAML; empty where no agent and no tool was seen.

    A single run is an example and no rule: the order of calls is left out, and each tool may run as often as it did.
    """
    tools = Counter(call.name for call in case.tools_used or ())
    agents = list(dict.fromkeys(case.agents_called or ()))
    if not tools and not agents:
        return ""
    seen: dict[str, Sequence[str] | Mapping[str, int]] = {}
    if agents:
        seen["agents_should_include"] = agents[:_MOST]
    if tools:
        seen["tools_should_include"] = list(tools)[:_MOST]
        seen["max_calls"] = dict(list(tools.items())[:_MOST])
    name = case.name or "run"
    return yaml.safe_dump({name: seen}, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)
