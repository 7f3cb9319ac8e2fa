"""Exposition: a registry as text, in the format that the scraper requests and with the detail that is configured.

OpenMetrics 1.0 carries exemplars, the classic text format does not. The library would also claim OpenMetrics 2.0 when
requested, whose rules its text does not follow; so the choice is made here, among formats that are fully supported.

What the rules, the boards and the documentation ask for is always there. Unless ``metrics.detail: full`` asks for all,
what none of them asks for is left out where it has many series; what is asked for without its service is added up under
the service ``__all__``; zeros of a service and a rubric begin with the first verdict. A test holds declarations and
what is asked for together.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal, TypeAlias, cast

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from . import families as f
from .families import Family

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_END: Final = b"# EOF"
_OPENMETRICS_VERSIONS = ("", "0.0.1", "1.0.0")
_MAX_ACCEPT = 4096


def expose(registry: CollectorRegistry, accept: str = "") -> tuple[bytes, str]:
    """The registry's metrics and their content type, negotiated from an HTTP ``Accept`` header."""
    if wants_openmetrics(accept):
        return cast("bytes", generate_openmetrics(registry)), OPENMETRICS  # type: ignore[no-untyped-call]  # the library's
    return generate_latest(registry), TEXT


def restricted(text: bytes, names: Collection[str]) -> bytes:
    r"""An exposition with the series of these names alone, as the library leaves out others for ``name[]``.

    >>> restricted(b"# HELP a_total A.\n# TYPE a_total counter\na_total 1.0\n# HELP b B.\nb 2.0\n", ["b"])
    b'# HELP b B.\nb 2.0\n'
    """
    wanted = {name.encode() for name in names}
    kept: list[bytes] = []
    head: list[bytes] = []
    for line in text.split(b"\n")[:-1]:
        if line == _END:
            kept.append(line)
        elif line.startswith(b"#"):
            head = [line] if line.startswith(b"# HELP ") else [*head, line]
        elif line.partition(b" ")[0].partition(b"{")[0] in wanted:
            kept += [*head, line]
            head = []
    return b"".join(line + b"\n" for line in kept)


def wants_openmetrics(accept: str) -> bool:
    """Whether a scraper that accepts this is sent OpenMetrics."""
    openmetrics = text = 0.0
    for entry in accept[:_MAX_ACCEPT].lower().split(","):
        name, *parts = (part.strip() for part in entry.split(";"))
        parameters = {key.strip(): value.strip(' "') for key, _, value in (part.partition("=") for part in parts)}
        quality = _quality(parameters.get("q", "1"))
        version = parameters.get("version", "")
        if name == "application/openmetrics-text" and version in _OPENMETRICS_VERSIONS:
            openmetrics = max(openmetrics, quality)
        elif name in ("text/plain", "text/*"):
            text = max(text, quality)
    return openmetrics > 0 and openmetrics >= text


def _quality(value: str) -> float:
    try:
        quality = float(value)
    except ValueError:
        return 0.0
    return quality if 0.0 <= quality <= 1.0 else 0.0


Detail: TypeAlias = Literal["standard", "full"]
ALL: Final = "__all__"
"""The label value of all services together."""
LOST: Final = ("shed", "undecodable", "error", "crashed")
"""Reasons for which a trace that was drawn is missing from every estimate: by service also in the standard detail."""
LEFT_OUT: Final = frozenset(
    {
        f.VERDICTS_JUDGE_FAILED, f.EFFECTIVE_SAMPLES, f.WINDOW_REACH, f.STATUS_SINCE,
        f.COMPOSITE_MEAN, f.METRIC_MEAN, f.ALERT_EVENTS, f.BLOCKERS, f.EMBEDDING_DURATION,
    }
)  # fmt: skip
ADDED_UP: Final = frozenset({f.METRIC_SCORE, f.EVALUATION_LAG})
"""Families whose services are added up."""
COARSE: Final = {
    f.APPLICATION_DURATION: (0.5, 2.0, 5.0, 15.0, 60.0, 300.0), f.METRIC_SCORE: (0.1, 0.3, 0.5, 0.7, 0.9, 1.0),
}  # fmt: skip
"""Bounds of histograms, a selection of the family's own."""

ONLY: Final = {
    f.STATUS: "for the status in force, with zeros beside `warning` and `critical`",
    f.LAST_VERDICT: "while the status is `no_data`",
    **dict.fromkeys((f.PASS_LOWER_RATIO, f.PASS_UPPER_RATIO), "while the status is `warning` or `critical`"),
    **dict.fromkeys((f.CHANGE_SCORE, f.DRIFT_SCORE), "while it is not 0"),
    **dict.fromkeys((f.SLICE_PASS_RATIO, f.SLICE_OTHERS_PASS_RATIO), "for parts that are worse"),
}
"""Families with only some series at the standard detail, and which."""


def added_up(family: Family, labels: tuple[str, ...]) -> tuple[str, ...]:
    """The label values under which a series is counted in the standard detail."""
    if family in ADDED_UP or (family is f.TRACES and labels[1] not in LOST):
        return (ALL, *labels[1:])
    return labels
