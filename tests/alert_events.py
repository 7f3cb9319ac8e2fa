"""Alert events for tests."""

from __future__ import annotations

from typing import Any

from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.event import AlertEvent, Example, MainFailure
from sidejudge.scoring.alerts.explanation import GROUP, TOOL, Cause, Explanation, FailureCount, NewVersion, WorstSlice
from sidejudge.scoring.alerts.lifecycle import AlertTransition

SINCE_NS = 1_795_255_380 * 10**9  # 2026-11-21 10:03 UTC
MINUTE_NS = 60 * 10**9
TRACES = ("4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331aa1b4f7d1e4c0d2e")


def event(**changes: Any) -> AlertEvent:
    """A pass rate that turned critical; ``changes`` as the event's own fields."""
    stated: dict[str, Any] = {
        "transition": AlertTransition.FIRING, "condition": "pass_rate_critical", "severity": Severity.CRITICAL,
        "title": "Too few traces pass", "runbook": "pass-rate-critical",
        "meaning": "users are served badly now; look at the worst traces and at what was deployed",
        "labels": (("service", "checkout"), ("environment", "production"), ("rubric", "qa")),
        "stated": "the pass ratio fell, and what came since is below the critical threshold 0.7", "unit": "ratio",
        "value": 0.27, "lower": 0.141, "upper": 0.446, "n": 100, "limit": 0.7, "since_ns": SINCE_NS,
        "at_ns": SINCE_NS + 12 * MINUTE_NS, "number": 1, "changed_ns": SINCE_NS - 5 * MINUTE_NS,
        "measured_ns": SINCE_NS - 5 * MINUTE_NS,
        "examples": (
            Example(trace_id=TRACES[0], reason="disqualified: compliance_false_pass_rate", composite=None, closed_ns=3),
            Example(trace_id=TRACES[1], reason="19 of 20 questions; wrong: Q7 (0, expected 5)", composite=0.12,
                    closed_ns=2),
            Example(trace_id=TRACES[2], reason="key 'reason' is missing", composite=0.41, closed_ns=1),
        ),
        "failure": MainFailure(
            reason="tool_result: tool refund failed", quoted="tool_result: tool refund failed: card 4111",
            count=61, of=73,
        ),
        "explained": Explanation(
            since_ns=SINCE_NS - 5 * MINUTE_NS, now=FailureCount(73, 100, 0.73), before=FailureCount(4, 100, 0.04),
            slices=(
                WorstSlice(
                    by="metadata.tenant", value="acme", pass_ratio=0.07, n=76, others=0.92, others_n=24, share=1.0
                ),
                WorstSlice(by="version", value="2.3.1", pass_ratio=0.1, n=80, others=0.95, others_n=20, share=0.93),
            ),
            new=(NewVersion(by="version", value="2.3.1", first_ns=SINCE_NS - 8 * MINUTE_NS),),
            causes=(
                Cause(by=TOOL, value="refund", count=61, share=0.88),
                Cause(by=GROUP, value="3fa2b1c0", count=61, share=0.87, words="tool_result: tool refund failed",
                      nameless="tool_result: tool … failed"),
            ),
        ),
    }  # fmt: skip
    return AlertEvent(**{**stated, **changes})
