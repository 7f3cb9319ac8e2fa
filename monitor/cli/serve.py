"""``sidejudge serve``: the monitor itself; ``sidejudge demo``: the same with sample traffic, on embedded defaults."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import CommandError, ending, warn
from .settings import FiniteRange, config_option, runnable

if TYPE_CHECKING:
    from sidejudge.monitor.config import Config, Loaded
    from sidejudge.monitor.runtime.process import Companion, Rereading


_ADDRESSES = ("SIDEJUDGE_SOURCES__OTLP__HTTP", "SIDEJUDGE_API__LISTEN")


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@config_option
@click.option("--otlp", metavar="HOST:PORT", help="Address to take traces on, in place of sources.otlp.http.")
@click.option("--api", metavar="HOST:PORT", help="Address of the status page and the API, in place of api.listen.")
@click.option(
    "--stay", is_flag=True, help="Beside an application: stay up, and judge nothing, where judging cannot start."
)
def serve(file: Path | None, config: Path | None, otlp: str | None, api: str | None, *, stay: bool) -> None:
    """Receive traces, judge a sample of them, report the status of applications. Runs until SIGTERM or Ctrl-C.

    FILE (or --config FILE) is the configuration; without it the embedded defaults and the environment hold.
    """
    early: list[int] = []  # SIGHUPs that come while the rest is loaded, where they would end the process
    signal.signal(signal.SIGHUP, lambda number, _: early.append(number))
    import asyncio

    from sidejudge.monitor.runtime.app import Monitor
    from sidejudge.monitor.runtime.process import Rereading, address_lines

    config = file or config
    # As variables they hold for what is read again, too, and a mistake in one is named as any other.
    os.environ.update({name: given for name, given in zip(_ADDRESSES, (otlp, api), strict=True) if given is not None})

    async def announce(_: Monitor, addresses: Mapping[str, str]) -> None:
        with suppress(OSError):  # whoever read it has gone, or its volume is full: a monitor goes on all the same
            for line in address_lines(addresses):
                click.echo(line)
        await asyncio.Event().wait()

    try:
        found = runnable(config)
    except CommandError as error:
        _forward_all_the_same(config, error, stay=stay)
        return
    with suppress(OSError):
        _announce_defaults(found)
    run(found.config, announce, Rereading(found, partial(_read_again, config), early), stay=stay)


def _announce_defaults(loaded: Loaded) -> None:
    """Show the defaults without a configuration, and who may reach a monitor that needs no credentials."""
    from sidejudge.monitor.config.warnings import is_loopback

    config = loaded.config
    if loaded.file is None and config.sampling.rate is None:
        click.echo(
            f"no configuration: every trace is judged by {', '.join(config.default_rubrics)}, "
            f"up to {config.sampling.traces_per_hour} an hour, then a share; 'sidejudge init' writes a configuration"
        )
    otlp, api = config.sources.otlp, config.api
    open_to_all = [
        (f"{key} {address}", f"SIDEJUDGE_{key.upper().replace('.', '__')}=127.0.0.1:{address.port}")
        for key, address, auth in (("sources.otlp.http", otlp.http, otlp.auth), ("api.listen", api.listen, api.auth))
        if auth is None and not is_loopback(address.host)
    ]
    if loaded.file is None and open_to_all:
        addresses, settings = (" and ".join(each) for each in zip(*open_to_all, strict=True))
        cause = f"{addresses}: whoever reaches this machine may send and read"
        warn(cause, f"set {settings}, or configure auth and tls")


def _read_again(path: Path | None, before: Loaded) -> Loaded:
    """The configuration as it is now; ``ConfigError`` where it cannot be used."""
    from sidejudge.monitor.config import ConfigError, resolve
    from sidejudge.monitor.config.errors import Problem
    from sidejudge.monitor.config.extras import missing

    found = resolve(path, os.environ, before.prompts)
    lacking = [Problem(path="", message=f"{cause}; {remedy}") for cause, remedy in missing(found.config)]
    if lacking:
        raise ConfigError(lacking, found.files)
    return found


def _forward_all_the_same(path: Path | None, mistake: CommandError, *, stay: bool) -> None:
    """A mistake in a sidecar's configuration ends judging, but not the application's telemetry or its Pod."""
    from sidejudge.monitor.config.load import forwarding
    from sidejudge.monitor.runtime.process import forward_until_signal

    config = forwarding(path, os.environ, stay=stay)
    if config is None:
        raise mistake
    with _errors_with_remedy():
        forward_until_signal(config, f"{mistake.cause}\n{mistake.remedy}")


def run(config: Config, beside: Companion, again: Rereading | None = None, *, stay: bool = False) -> None:
    """Run a monitor in this process; a failed start is an error with its remedy."""
    from sidejudge.monitor.runtime.process import run_until_signal

    with _errors_with_remedy():
        run_until_signal(config, beside, again, stay=stay)


@contextmanager
def _errors_with_remedy() -> Iterator[None]:
    """Turn the cause of a failed start into an error with its remedy."""
    from sidejudge.integrations.jsonl import SinkError
    from sidejudge.integrations.store.sqlite import StoreError
    from sidejudge.monitor.ingest.listeners import CertificateError
    from sidejudge.monitor.ingest.server import AddressError

    with (
        ending(CertificateError, remedy="give PEM files that belong together and can be read"),
        ending(SinkError, remedy="check the path and its permissions, or leave the sink out"),
    ):
        try:
            yield
        except AddressError as error:
            variable = f"SIDEJUDGE_{str(error).partition(':')[0].upper().replace('.', '__')}"
            remedy = f"stop what listens there, or choose another address with this key, or {variable}=127.0.0.1:PORT"
            raise CommandError(str(error), remedy) from error
        except StoreError as error:
            cause, _, remedy = str(error).partition("\n")
            raise CommandError(cause, remedy or "check the path and its permissions, or set store.path") from error


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
@click.option("--seconds", type=FiniteRange(min=1), help="End by itself after this long.")
def demo(otlp: str, api: str, seconds: float | None) -> None:
    """Run the monitor with replayed agent and call-centre traffic, some of it faulty, and show what it finds.

    The state is thrown away at the end.
    """
    import tempfile

    from sidejudge.monitor.config import ConfigError, load
    from sidejudge.monitor.demo.scene import CONFIG, Scene

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
