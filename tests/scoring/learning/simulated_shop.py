"""An order desk whose runs are made by a program that knows which of them are wrong, and how."""

from __future__ import annotations

import random

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.trace.span import ToolCall

FAULTS = (
    "no_verification",
    "invented_order",
    "refund_twice",
    "wrong_tool",
    "wrong_reason",
    "approves_and_rejects",
    "loops",
)


def runs(seed: int, count: int, *, bad: float) -> list[tuple[Case, bool]]:
    """Runs, each with whether it is good. Good ones differ in length, in order of independent calls and in wording."""
    dice = random.Random(seed)
    return [run(dice, number, dice.choice(FAULTS) if dice.random() < bad else None) for number in range(count)]


def run(dice: random.Random, number: int, fault: str | None) -> tuple[Case, bool]:
    user, order = f"user_{dice.randrange(10**4):04d}", f"#W{dice.randrange(10**7):07d}"
    calls = [] if fault == "no_verification" else [call("find_user", {"email": f"{user}@example.com"}, {"user": user})]
    reads = [
        call(
            "get_order", {"order_id": order}, {"order": order, "status": "delivered", "amount": dice.randrange(5, 300)}
        )
    ]
    if dice.random() < 0.5:
        reads.append(call("get_policy", {}, "Refunds within 30 days."))
    dice.shuffle(reads)
    calls += reads
    if dice.random() < 0.3:
        calls.append(call("calculate", {"expression": f"{dice.randrange(99)} * 2"}, "84"))
    wrong = f"#W{dice.randrange(10**7):07d}" if fault == "invented_order" else order
    reason = "because" if fault == "wrong_reason" else dice.choice(["damaged", "late", "unwanted"])
    if dice.random() < 0.6 or fault in ("invented_order", "wrong_reason", "refund_twice"):
        calls += [call("refund", {"order_id": wrong, "reason": reason}, "ok")] * (2 if fault == "refund_twice" else 1)
        calls.append(call("notify", {"user_id": user, "message": "Your refund is on its way."}, "sent"))
    else:
        calls.append(call("reject", {"order_id": order}, "ok"))
    match fault:
        case "wrong_tool":
            calls.append(call("delete_account", {"user_id": user}, "ok"))
        case "approves_and_rejects":
            calls += [
                call("refund", {"order_id": order, "reason": reason}, "ok"),
                call("reject", {"order_id": order}, "ok"),
            ]
        case "loops":
            calls += [call("get_policy", {}, "Refunds within 30 days.")] * 9
    requested = f"Order {order}: I want my money back. My address is {user}@example.com"
    case = Case(
        case_id=f"run-{number}", model_output="Done.", input=requested, tools_used=tuple(calls),
        agents_called=("desk",),
        input_tokens=dice.randrange(800, 1500), output_tokens=dice.randrange(80, 150),
    )  # fmt: skip
    return case, fault is None


def call(name: str, arguments: dict, result: object) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, result=result)
