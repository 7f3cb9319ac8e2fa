"""Document: a proposal as a commented configuration file, as values of the Helm library chart, as a Compose file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import yaml

from sidejudge.dashboards.yaml_text import readable
from sidejudge.monitor.config.library import library
from sidejudge.scoring.lexical.amount import amount

from .proposal import Proposal, ProposedRoute

_WIDTH = 120
_SHORT = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What somebody chose: ``source`` says in words where traces were read.

    ``judge`` is a model, None for none; ``budget_usd`` what it may cost an hour. ``langfuse`` is the address of the
    Langfuse that scores go to, ``read_langfuse`` whether traces are read from it too, ``forward`` where requests go on.
    """

    source: str
    judge: str | None = None
    budget_usd: float = 1.0
    langfuse: str | None = None
    read_langfuse: bool = False
    forward: str | None = None


def document(proposal: Proposal, choices: Choices) -> str:
    """The file as YAML text, valid as a configuration."""
    lines = list(_lines(proposal, choices))
    return "\n".join(lines).rstrip() + "\n"


def _lines(proposal: Proposal, choices: Choices) -> Iterator[str]:
    yield from _comment(f"Written by 'sidejudge init' from {choices.source}. Every key: sidejudge schema, or the help.")
    yield from _comment("Check it with 'sidejudge check FILE', start with 'sidejudge serve --config FILE'.")
    for hint in proposal.hints:
        yield from _comment(f"Note: {hint}.")
    yield from _sampling()
    yield from _routes(proposal.routes, proposal.default_rubrics)
    if proposal.ready:
        yield ""
        yield from _comment("Ready rubrics, to be changed here. 'sidejudge rubrics list' shows the others.")
        yield "rubrics:"
        ready = library()
        for name in proposal.ready:
            yield from (f"  {line}".rstrip() for line in ready[name].text.strip().splitlines())
    if proposal.scenarios:
        yield ""
        yield from _comment("What runs of these names kept to. Remove a line that is only a habit.")
        yield readable({"scenarios": proposal.scenarios}, width=_WIDTH).rstrip().replace("${", "$${")
    yield from _judge(choices)
    yield from _langfuse(choices)
    yield from _alerts()


def _sampling() -> Iterator[str]:
    yield ""
    yield from _comment(
        "All traces up to so many an hour, then a share, each with its true weight. 'rate: 0.05' fixes it."
    )
    yield "sampling:"
    yield "  traces_per_hour: 1000"


def _routes(routes: Sequence[ProposedRoute], default_rubrics: Sequence[str]) -> Iterator[str]:
    yield ""
    yield from _comment("The first route that matches judges a trace. Without a match: default_rubrics.")
    if routes:
        yield "routes:"
        for route in routes:
            yield from _route(route)
    yield f"default_rubrics: [{', '.join(default_rubrics)}]"


def _route(route: ProposedRoute) -> Iterator[str]:
    seen = [amount(route.traces, "trace")]
    seen += [
        f"{kind} {', '.join(names)}" for kind, names in (("agents", route.agents), ("tools", route.tools)) if names
    ]
    yield from _comment(f"Seen: {'; '.join(seen)}.", indent=2)
    for reason in route.reasons:
        yield from _comment(reason, indent=2)
    match = ", ".join(f"{key}: {_scalar(value)}" for key, value in route.match.items())
    yield f"  - match: {{{match}}}"
    yield f"    rubrics: [{', '.join(route.rubrics)}]"
    if route.scenario is not None:
        yield f"    scenario: {_scalar(route.scenario)}"


def _judge(choices: Choices) -> Iterator[str]:
    yield ""
    yield from _comment(
        "A judge decides what words and structure cannot: relevance, faithfulness, quality. It costs money."
    )
    section: Mapping[str, object] = {
        "model": choices.judge or "openai/gpt-4o-mini-2024-07-18", "api_key": "${OPENAI_API_KEY}",
        "budget_usd_per_hour": choices.budget_usd,
    }  # fmt: skip
    if choices.judge is not None and not choices.judge.startswith("openai/"):
        section = {key: value for key, value in section.items() if key != "api_key"}
    text = yaml.safe_dump({"evaluators": {"judge": dict(section)}}, sort_keys=False).rstrip()
    yield text if choices.judge else _commented(text)


def _langfuse(choices: Choices) -> Iterator[str]:
    access = {
        "base_url": choices.langfuse or "https://cloud.langfuse.com", "public_key": "${LANGFUSE_PUBLIC_KEY}",
        "secret_key": "${LANGFUSE_SECRET_KEY}",
    }  # fmt: skip
    yield ""
    if choices.read_langfuse:
        yield from _comment("Traces are read from Langfuse; the application need not be touched.")
        yield yaml.safe_dump({"sources": {"langfuse": access}}, sort_keys=False).rstrip()
        yield ""
    yield from _comment("Scores are written to the traces in Langfuse.")
    text = yaml.safe_dump({"sinks": {"langfuse": access}}, sort_keys=False).rstrip()
    yield text if choices.langfuse else _commented(text)
    if choices.forward:
        yield ""
        yield from _comment("Requests go on there untouched; the application gets that server's own answer.")
        yield yaml.safe_dump({"forward": {"url": choices.forward}}, sort_keys=False).rstrip()


def _alerts() -> Iterator[str]:
    yield ""
    yield from _comment("When a service is a warning, and when it is critical. These are the defaults.")
    yield "alerts:"
    yield "  thresholds: {warning: 0.85, critical: 0.70}"
    yield "  window: 1h"
    yield "  min_samples: 30"


def _scalar(value: str) -> str:
    """A text that is read as the same text, whatever it looks like: no YAML, no variable of the environment."""
    return json.dumps(value, ensure_ascii=False).replace("${", "$${")


def _comment(text: str, indent: int = 0) -> list[str]:
    # Names come from traces: a line break in one must not end the comment.
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return textwrap.wrap(
        plain, _WIDTH - indent, initial_indent=" " * indent + "# ", subsequent_indent=" " * indent + "#   "
    )


def _commented(text: str) -> str:
    return "\n".join(f"# {line}" for line in text.splitlines())


IMAGE = "registry.example.com/sidejudge/sidejudge"
"""The same placeholder as in the charts: the registry is the operator's."""


def helm_values(config: str, secrets: list[str]) -> str:
    """Values of an application's chart that includes the library chart.

    Args:
        config: The configuration file's text, comments included.
        secrets: Environment variables that it names; each comes from a Secret.
    """
    indented = "\n".join(f"    {line}".rstrip() for line in config.splitlines())
    lines = ["# Values of your chart; the library chart puts the monitor beside the application.", "sidejudge-sidecar:"]
    if secrets:
        lines += [
            "  # kubectl create secret generic sidejudge --from-literal=" + " --from-literal=".join(
                f"{name}=…" for name in secrets
            ),
            "  secrets:",
            "    sidejudge:",
            "      existingSecret: sidejudge",
            "      keys: {" + ", ".join(f"{name}: {name}" for name in secrets) + "}",
        ]  # fmt: skip
    return "\n".join([*lines, "  config:", indented]) + "\n"


def chart_lines() -> str:
    """What the application's own chart needs, to be copied."""
    release = version("sidejudge")
    return f"""\
Chart.yaml:
  dependencies:
    - name: sidejudge-sidecar
      version: {release}
      repository: oci://REGISTRY/charts

templates/deployment.yaml, in the Pod template:
  metadata:
    labels:
      {{{{- include "sidejudge-sidecar.labels" . | nindent 8 }}}}
  spec:
    initContainers:
      {{{{- include "sidejudge-sidecar.container" . | nindent 8 }}}}
    containers:
      - name: YOUR-APPLICATION
        env:
          - {{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: "http://127.0.0.1:4318"}}
          - {{name: OTEL_SERVICE_NAME, value: YOUR-SERVICE}}
    volumes:
      {{{{- include "sidejudge-sidecar.volumes" . | nindent 8 }}}}
"""


def compose(config_file: str, secrets: list[str]) -> str:
    """A Compose file that runs the monitor with this configuration; the application sends to ``sidejudge:4318``."""
    service: dict[str, object] = {
        "image": f"{IMAGE}:{version('sidejudge')}",
        "command": ["serve", "--config", "/etc/sidejudge/sidejudge.yaml"],
        "volumes": [f"./{config_file}:/etc/sidejudge/sidejudge.yaml:ro", "sidejudge-state:/var/lib/sidejudge"],
        **({"environment": {name: f"${{{name}:?set it in .env}}" for name in secrets}} if secrets else {}),
        "ports": ["127.0.0.1:8790:8790", "127.0.0.1:4318:4318"],
        "restart": "unless-stopped",
    }
    # The image's working directory is where the store lies by default, and belongs to the image's user.
    text = yaml.safe_dump({"services": {"sidejudge": service}, "volumes": {"sidejudge-state": None}}, sort_keys=False)
    return (
        "# The application: OTEL_EXPORTER_OTLP_ENDPOINT=http://sidejudge:4318, OTEL_SERVICE_NAME=its name.\n"
        "# The status page: http://127.0.0.1:8790/\n"
        "# The image: name your registry, or build it where the source is: docker build -t sidejudge .\n" + text
    )
