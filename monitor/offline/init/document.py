"""Document: a proposal as a commented configuration file, as values of the Helm library chart, as a Compose file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files

import yaml
from jinja2 import Environment, StrictUndefined, Template

from sidejudge.dashboards.yaml_text import readable
from sidejudge.monitor.config.library import library
from sidejudge.scoring.lexical.amount import amount

from .proposal import Proposal, ProposedRoute

_WIDTH = 120


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
    judge: dict[str, object] = {
        "model": choices.judge or "openai/gpt-4o-mini-2024-07-18", "api_key": "${OPENAI_API_KEY}",
        "budget_usd_per_hour": choices.budget_usd,
    }  # fmt: skip
    if choices.judge is not None and not choices.judge.startswith("openai/"):
        del judge["api_key"]
    access = {
        "base_url": choices.langfuse or "https://cloud.langfuse.com", "public_key": "${LANGFUSE_PUBLIC_KEY}",
        "secret_key": "${LANGFUSE_SECRET_KEY}",
    }  # fmt: skip
    text = _template().render(proposal=proposal, choices=choices, judge=judge, access=access, library=library())
    return f"{text.rstrip()}\n"


@cache
def _template() -> Template:
    made = Environment(  # noqa: S701  # YAML is no HTML: what comes from traces is quoted by the filters
        trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    made.filters.update(
        comment=_comment, scalar=_scalar, seen=_seen, yaml=_yaml, scenarios=_scenarios,
        match=lambda match: f"{{{', '.join(f'{key}: {_scalar(value)}' for key, value in match.items())}}}",
    )  # fmt: skip
    return made.from_string(_text("configuration.yaml.jinja"))


def _seen(route: ProposedRoute) -> str:
    acted = (("agents", route.agents), ("tools", route.tools))
    return "; ".join([amount(route.traces, "trace"), *(f"{kind} {', '.join(names)}" for kind, names in acted if names)])


def _yaml(value: object, in_force: object) -> str:
    """A section, as a comment unless it is in force."""
    text = yaml.safe_dump(value, sort_keys=False).rstrip()
    return text if in_force else textwrap.indent(text, "# ")


def _scenarios(scenarios: Mapping[str, object]) -> str:
    return readable({"scenarios": scenarios}, width=_WIDTH).rstrip().replace("${", "$${")


def _scalar(value: str) -> str:
    """A text that is read as the same text, whatever it looks like: no YAML, no variable of the environment."""
    return json.dumps(value, ensure_ascii=False).replace("${", "$${")


def _comment(text: str, indent: int = 0) -> str:
    # Names come from traces: a line break in one must not end the comment.
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    begins, goes_on = f"{' ' * indent}# ", f"{' ' * indent}#   "
    return "\n".join(textwrap.wrap(plain, _WIDTH - indent, initial_indent=begins, subsequent_indent=goes_on))


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
    return _text("chart.txt").replace("VERSION", version("sidejudge"))


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


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
