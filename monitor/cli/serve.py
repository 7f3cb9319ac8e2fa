"""``sidejudge serve``: the monitor itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import CommandError
from .settings import config_option, runnable

if TYPE_CHECKING:
    from monitor.config import Config
    from monitor.runtime.process import Companion


@click.command()
@config_option
def serve(config: Path | None) -> None:
    """Take traces in, judge a sample of them, and say how the applications do. Runs until SIGTERM or Ctrl-C."""
    import asyncio  # noqa: PLC0415 - what runs is imported here and not before

    from monitor.runtime.app import Monitor  # noqa: PLC0415

    async def announce(_: Monitor, addresses: Mapping[str, str]) -> None:
        for line in where_to_look(addresses):
            click.echo(line)
        await asyncio.Event().wait()

    run(runnable(config).config, announce)


def run(config: Config, beside: Companion) -> None:
    """Run a monitor in this process; what keeps it from starting is an error with its remedy."""
    from integrations.jsonl import SinkError  # noqa: PLC0415
    from integrations.store.sqlite import StoreError  # noqa: PLC0415
    from monitor.ingest.server import AddressError  # noqa: PLC0415
    from monitor.ingest.tls import CertificateError  # noqa: PLC0415
    from monitor.runtime.process import run_until_signal  # noqa: PLC0415

    try:
        run_until_signal(config, beside)
    except AddressError as error:
        raise CommandError(str(error), "stop what listens there, or choose another address with this key") from error
    except CertificateError as error:
        raise CommandError(str(error), "give PEM files that belong together and can be read") from error
    except SinkError as error:
        raise CommandError(str(error), "check the path and its permissions, or leave the sink out") from error
    except StoreError as error:
        cause, _, remedy = str(error).partition("\n")
        raise CommandError(cause, remedy or "check the path and its permissions, or set store.path") from error


def where_to_look(addresses: Mapping[str, str]) -> list[str]:
    """The addresses of a running monitor, one a line."""
    api = addresses["api"]
    grpc = [f"  gRPC     {addresses['grpc']}"] if "grpc" in addresses else []
    return [
        f"  OTLP     {addresses['otlp']}/v1/traces",
        *grpc,
        f"  status   {api}/",
        f"  metrics  {api}/metrics",
        f"  API      {api}/docs",
    ]
