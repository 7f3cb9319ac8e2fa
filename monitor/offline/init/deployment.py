"""Deployment: a configuration as values of the Helm library chart, and as a Compose file."""

from __future__ import annotations

from importlib.metadata import version

import yaml

IMAGE = "registry.example.com/sidejudge/sidejudge"
"""The same placeholder as in the charts: the registry is the operator's."""


def helm_values(config: str, secrets: list[str]) -> str:
    """Values of an application's chart that includes the library chart.

    Args:
        config: The configuration file's text, comments included.
        secrets: Environment variables that it names; each comes from a Secret.
    """
    indented = "\n".join(f"    {line}".rstrip() for line in config.splitlines())
    lines = [
        "# Values of your chart; the library chart puts the monitor beside the application.",
        "sidejudge-sidecar:",
    ]
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
