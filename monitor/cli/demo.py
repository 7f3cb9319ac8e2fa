"""``sidejudge demo``: the monitor with sample traffic, on embedded defaults, without keys and without network."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "--otlp",
    default="127.0.0.1:4318",
    show_default=True,
    envvar="SIDEJUDGE_SOURCES__OTLP__HTTP",
    help="Address to take traces on.",
)
@click.option(
    "--api",
    default="127.0.0.1:8790",
    show_default=True,
    envvar="SIDEJUDGE_API__LISTEN",
    help="Address of the status page and the API.",
)
@click.option("--seconds", type=click.FloatRange(min=1), help="End by itself after this long.")
def demo(otlp: str, api: str, seconds: float | None) -> None:
    """Run the monitor with replayed agent and call-centre traffic, some of it gone wrong, and show what it finds.

    The state is thrown away at the end.
    """
    import os
    import tempfile
    from pathlib import Path

    from sidejudge.monitor.config import ConfigError, load
    from sidejudge.monitor.demo.scene import CONFIG, Scene

    from .errors import ending
    from .serve import run

    with tempfile.TemporaryDirectory(prefix="sidejudge-demo-") as folder:
        own = {
            "SIDEJUDGE_SOURCES__OTLP__HTTP": otlp,
            "SIDEJUDGE_API__LISTEN": api,
            "SIDEJUDGE_STORE__PATH": str(Path(folder) / "demo.sqlite"),
            "SIDEJUDGE_LOG__LEVEL": "warning",
        }
        environ = {k: v for k, v in os.environ.items() if not k.startswith("SIDEJUDGE_")} | own
        with ending(ConfigError, remedy="give --otlp and --api addresses such as 127.0.0.1:14318"):
            config = load(CONFIG, environ)
        run(config, Scene(seconds).play)
