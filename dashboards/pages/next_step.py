"""Next step: what has come in and what became of it while there is no verdict yet, and what brings the first one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sidejudge.integrations.otlp.server.traffic import Receiving
from sidejudge.scoring.lexical.amount import amount

_INCOMPLETE = "/verdicts?passed=none"
_BY_REASON = {
    "sampled_out": "Sampling did not draw them: raise sampling.rate, or add a rule that draws what matters.",
    "no_rubric": "No route selects them: add a route for this service (routes), or default_rubrics.",
    "not_a_run": "No model, agent or tool took part in them: instrument the part that calls the model.",
    "excluded": "They are traces of evaluators, which are never judged: send those of the application.",
    "no_content": "They carry no message contents: switch on their capture in the instrumentation.",
    "incomplete": "They were cut short: see whether the application ends its spans and flushes its exporter.",
    "unavailable": "The rubrics lack what they need, such as a reference or a judge:",
    "judge_failed": "The judge could not be asked: see its card below, and evaluators.judge.",
    "over_budget": "The budget of the judge did not reach for them: raise it, or lower sampling.rate.",
    "shed": "They were given up for lack of room: lower sampling.rate, or raise the limits of assembly.",
    "late": "Their spans came after they had ended: raise assembly.late.",
    "undecodable": "Their bytes could not be read: see what sends to this address.",
    "handed_over": "This process ended, and the monitor that drain.to names judges them.",
    "crashed": "The process ended while it judged them: see its log and its memory limit.",
    "error": "Judging them failed: see the log.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """What happened so far, what to do, and an example or a page that helps."""

    happened: str
    advice: str
    example: str = ""
    link: str = ""
    link_text: str = ""


def next_step(
    seen: int, still_open: int, ended: Mapping[str, int], receiving: Receiving | None, otlp_port: int
) -> NextStep:
    """The step that follows from how most traces ended.

    Args:
        seen: Traces since the start.
        still_open: Those of them that have not ended.
        ended: The others, by reason.
        receiving: What has come in; None where nothing listens.
        otlp_port: The port that listens for OTLP over HTTP.
    """
    if not seen:
        return _nothing_seen(receiving, otlp_port)
    reason, most = max(ended.items(), key=lambda item: item[1], default=("", 0))
    happened = f"{amount(seen, 'trace')} came in, {still_open:,} still open"
    if not most:
        return NextStep(happened=f"{happened}.", advice="A trace is judged once it is whole; that takes some seconds.")
    link = {"link": _INCOMPLETE, "link_text": "verdicts with the reasons"} if reason == "unavailable" else {}
    advice = _BY_REASON.get(reason, "The outcomes below show how each ended.")
    return NextStep(happened=f"{happened}, {most:,} ended as {reason.replace('_', ' ')}.", advice=advice, **link)


def _nothing_seen(receiving: Receiving | None, otlp_port: int) -> NextStep:
    if receiving is None:
        return NextStep(happened="Nothing has come in.", advice="Traces are read from where sources names them.")
    refused = sum(receiving.refused.values())
    if refused:
        codes = ", ".join(map(str, sorted(receiving.refused)))
        return NextStep(
            happened=f"{amount(refused, 'request')} refused ({codes}), none brought a trace.",
            advice="See the log for the cause, and what the application's exporter sends.",
        )
    if receiving.requests:
        return NextStep(
            happened=f"{amount(receiving.requests, 'request')} came in, none with a span.",
            advice="Send traces, not only logs or metrics.",
        )
    scheme = "https" if receiving.encrypted else "http"
    return NextStep(
        happened="Nothing has come in.",
        advice="Let the application send OTLP traces here with these variables, or see",
        link="/help/tutorials",
        link_text="how it is done with your client",
        example=f"OTEL_EXPORTER_OTLP_ENDPOINT={scheme}://THIS-HOST:{otlp_port}\nOTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
    )
