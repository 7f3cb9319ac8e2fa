"""A rubric as data: what stands in a configuration may stand here."""

SUPPORT = {
    "title": "Acme support",
    "pass_mark": 1.0,
    "metrics": [
        {"id": "polite", "python": "acme_politeness", "timeout": 10, "weight": 0.5},
        {"id": "brief", "check": {"word-count": {"max": 50}}, "weight": 0.5},
    ],
}
