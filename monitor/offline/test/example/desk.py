"""A refund desk of three rules, to try ``sidejudge test`` on."""

from __future__ import annotations

import re

_DELIVERED_DAYS_AGO = {"A-17": 6, "B-02": 140}


def answer(question: str) -> str | dict[str, object]:
    """The desk's answer, with the agents and tools that it used."""
    found = re.search(r"[A-Z]-\d+", question)
    if found is None:
        return {"output": "Hello! Which order is it about?", "agents_called": ["orchestrator"], "tools_used": []}
    order = found[0]
    days = _DELIVERED_DAYS_AGO.get(order)
    calls: list[dict[str, object]] = [{"name": "find_order", "arguments": {"id": order}, "result": {"days": days}}]
    if days is None:
        stated, agents = f"Order {order} is not yours; somebody will call you.", ["orchestrator", "fraud"]
    elif days > 30:
        stated, agents = f"Order {order} is older than 30 days, so it cannot be refunded.", ["orchestrator"]
    else:
        calls.append({"name": "issue_refund", "arguments": {"id": order}, "result": "done"})
        stated, agents = f"The refund for order {order} is on its way.", ["orchestrator"]
    return {"output": stated, "agents_called": agents, "tools_used": calls}
