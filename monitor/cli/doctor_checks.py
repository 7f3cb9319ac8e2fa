"""Doctor checks: can a monitor run here? Each question has an answer and, where that is bad, a remedy."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Literal
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

from sidejudge.integrations.addresses import port_of
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.kept_requests import beside, kept_in
from sidejudge.monitor.alerting.plan import thin_traffic
from sidejudge.monitor.config import Config, ConfigError, Loaded
from sidejudge.monitor.config.evaluators import EmbeddingSection
from sidejudge.monitor.config.extras import EXTRAS, FLEET, JUDGE, extra_of, installed, needed
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.monitor.config.langfuse import LangfuseProject
from sidejudge.monitor.config.plugins import all_plugins
from sidejudge.monitor.config.renamed import old_mode
from sidejudge.monitor.config.sinks import OtelEventsSink
from sidejudge.monitor.config.sources import ForwardSection
from sidejudge.monitor.config.units import Address, size_text
from sidejudge.monitor.ingest.listeners import CertificateError, check_authority, out_of_date, read_certificates
from sidejudge.monitor.runtime.memory_bound import memory_bound

_MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")
Grade = Literal["ok", "warn", "fail"]
MIN_FREE_BYTES = 1 << 30
EPOCH_OF_THIS_CODE = 1_760_000_000
"""A clock before October 2025 has not been set."""
_MOST_NAMED = 100


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One question, its grade, what was found, and what to do about it (empty when it is well)."""

    subject: str
    grade: Grade
    found: str
    remedy: str = ""


def _graded(subject: str, found: str, remedy: str, grade: Grade = "warn") -> CheckResult:
    """It is well where there is no remedy, and else ``grade``."""
    return CheckResult(subject, grade if remedy else "ok", found, remedy)


def examine(loaded: Loaded | None, error: ConfigError | None, *, notify: bool = False) -> Iterator[CheckResult]:
    """All checks before a start. ``error`` is given when the configuration could not be loaded.

    With ``notify`` each receiver of alerts is sent a test notice.
    """
    yield CheckResult("python", "ok", ".".join(map(str, sys.version_info[:3])))
    yield _clock()
    yield _protobuf()
    yield from _extras(loaded.config if loaded is not None else None)
    yield from _plugins()
    if error is not None or loaded is None:
        found = error.problems if error is not None else ()
        text = str(found[0]) if len(found) == 1 else f"{len(found)} mistakes" if found else "not loaded"
        yield CheckResult("configuration", "fail", text, "'sidejudge check FILE' shows each mistake with its place")
        return
    yield CheckResult("configuration", "ok", str(loaded.file) if loaded.file else "embedded defaults and environment")
    old_names = [(f"{old} is the old name of {new}", f"write {new}") for old, new in loaded.renamed]
    for cause, remedy in (*old_names, *old_mode(loaded.config.alerts)):
        yield CheckResult("configuration", "warn", cause, remedy)
    yield from memory_limit(loaded.config)
    yield from _ports(loaded.config)
    yield from certificates(loaded.config)
    yield _contents(loaded.config)
    if loaded.config.forward is not None:
        yield _upstream(loaded.config.forward)
        yield from _buffer(loaded.config)
    yield from _store(loaded.config.store.path)
    for cause, remedy in thin_traffic(loaded.config):
        yield CheckResult("traffic", "warn", cause, remedy)
    yield from reached(loaded)
    yield from _notified(loaded.config) if notify else _not_notified(loaded.config)


def reached(loaded: Loaded) -> Iterator[CheckResult]:
    """Whether all external services that the configuration names answer."""
    if loaded.config.evaluators.judge is not None:
        yield from _judges(loaded.config)
    if loaded.config.sources.langfuse is not None:
        yield _langfuse("sources.langfuse", loaded.config.sources.langfuse)
    if loaded.config.evaluators.embedding is not None:
        yield from _embedding(loaded.config.evaluators.embedding)
    if loaded.config.sinks.langfuse is not None:
        yield _langfuse("sinks.langfuse", loaded.config.sinks.langfuse, loaded.config)
        yield from _unarrived(loaded.config.store.path)
        yield from _held(loaded.config.store.path)
    if loaded.config.langfuse is not None:
        yield from _in_langfuse(loaded)
    if loaded.config.sinks.otel_events is not None:
        yield _otel_events(loaded.config.sinks.otel_events)
    if loaded.config.fleet is not None:
        yield from _fleet(loaded.config, loaded.config.fleet)


def _clock() -> CheckResult:
    now = time.time()
    remedy = "set the clock: windows, retention and verdict times go by it" if now < EPOCH_OF_THIS_CODE else ""
    return _graded("clock", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)), remedy, "fail")


def _protobuf() -> CheckResult:
    from google.protobuf import __version__
    from google.protobuf.internal import api_implementation

    kind = api_implementation.Type()  # type: ignore[no-untyped-call,unused-ignore]  # untyped in some stubs
    if kind != "upb":
        remedy = "unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION, or install protobuf from a wheel"
        return CheckResult("protobuf", "warn", f"{kind} {__version__}, many times slower than upb", remedy)
    return CheckResult("protobuf", "ok", f"upb {__version__}")


def _extras(config: Config | None) -> Iterator[CheckResult]:
    wanted = {extra: key for key, extra in needed(config)} if config is not None else {}
    for extra in EXTRAS:
        subject = f"extra {extra.name}"
        if installed(extra):
            yield CheckResult(subject, "ok", "installed")
        elif extra in wanted:
            yield CheckResult(subject, "fail", f"not installed, and {wanted[extra]} needs it", extra.remedy)
        else:
            yield CheckResult(subject, "ok", f"not installed (only for {extra.purpose})")


def _plugins() -> Iterator[CheckResult]:
    for each in all_plugins():
        subject = f"plugin {each.group.removeprefix('sidejudge.')}.{each.name}"
        if each.error is None:
            yield CheckResult(subject, "ok", f"of {each.package}")
        else:
            remedy = "mend the package or take it out; the monitor goes on without it"
            yield CheckResult(subject, "warn", f"of {each.package}: {each.error}", remedy)


def memory_limit(config: Config, file: Path = _MEMORY_LIMIT) -> Iterator[CheckResult]:
    """Whether this container's memory limit covers the monitor's maximum; nothing without a limit."""
    try:
        limit = int(file.read_text())
    except (OSError, ValueError):  # no cgroup of version 2, or "max"
        return
    bound = sum(part.max_bytes for part in memory_bound(config))
    found = f"{limit >> 20} MiB, and at most {bound >> 20} MiB are taken"
    remedy = "raise the limit, or lower what 'sidejudge check' lists as memory" if limit < bound else ""
    yield _graded("memory limit", found, remedy)


def _ports(config: Config) -> Iterator[CheckResult]:
    running = _answers(config)
    if running:
        yield from _traffic(config)
    otlp = config.sources.otlp
    wanted = [("api.listen", config.api.listen), ("sources.otlp.http", otlp.http)]
    wanted += [("sources.otlp.grpc", otlp.grpc)] if otlp.grpc is not None else []
    for key, address in wanted:
        why = _not_bindable(address)
        if why is None:
            yield CheckResult(key, "ok", f"{address} is free")
        elif running:
            yield CheckResult(key, "ok", f"{address} is in use, and a monitor answers at {config.api.listen}")
        else:
            yield CheckResult(key, "fail", f"{address}: {why}", f"free the port, or set {key} to another address")


def certificates(config: Config) -> Iterator[CheckResult]:
    """Whether the certificates, keys and authorities that the configuration names can be used."""
    forward, remedy = config.forward, "give PEM files that belong together and can be read"
    for key, tls in (("sources.otlp.tls", config.sources.otlp.tls), ("api.tls", config.api.tls)):
        if tls is None:
            continue
        try:
            read_certificates(tls, key)
        except CertificateError as error:
            yield CheckResult(key, "fail", str(error), remedy)
        else:
            if why := out_of_date(tls):
                yield CheckResult(key, "warn", f"{tls.certificate}: {why}", "put a valid certificate there")
            else:
                yield CheckResult(key, "ok", f"{tls.certificate} and {tls.key} belong together")
    if forward is not None and forward.ca is not None:
        try:
            check_authority(forward.ca, "forward.ca")
        except CertificateError as error:
            yield CheckResult("forward.ca", "fail", str(error), remedy)


def _upstream(section: ForwardSection) -> CheckResult:
    """Whether a connection can be made, encrypted where it will be; no request is sent over it."""
    url, host = section.url, urlsplit(section.url).hostname or ""
    try:
        with socket.create_connection((host, port_of(url)), timeout=3.0) as connection:
            if url.startswith("https:"):
                ssl.create_default_context(cafile=section.ca).wrap_socket(connection, server_hostname=host).close()
    except (OSError, ValueError) as error:
        why = f"{url} cannot be reached ({getattr(error, 'strerror', None) or error})"
        remedy = "start it, or set forward.url to where it is"
        if isinstance(error, ssl.SSLCertVerificationError):
            remedy = "let it show a valid certificate for this name, or set forward.ca to the authority that signed it"
        return CheckResult("forward.url", "fail", why, remedy)
    return CheckResult("forward.url", "ok", f"{url} can be reached")


def _buffer(config: Config) -> Iterator[CheckResult]:
    """Whether there is room for the buffer of forwarded requests, and how much it holds."""
    size = config.forward.buffer if config.forward is not None else None
    if size is None:
        return
    path = beside(config.store.path)
    try:
        count, held = kept_in(path)
    except StoreError as error:
        yield CheckResult("forward.buffer", "warn", str(error), "the next start puts a damaged file aside")
        return
    free = shutil.disk_usage(_folder_of(path)).free
    found = f"{count:,} requests are kept in {path} ({held / 2**20:,.1f} MiB of {size_text(size)})"
    if free < size - held:
        remedy = "free some, or lower forward.buffer: what does not fit is answered with upstream's failure"
        yield CheckResult("forward.buffer", "warn", f"{found}; {free / 2**30:.1f} GiB of the disk are free", remedy)
    elif count:
        yield CheckResult("forward.buffer", "warn", found, "they are sent as soon as forward.url takes them")
    else:
        yield CheckResult("forward.buffer", "ok", f"nothing is kept; up to {size_text(size)} would be, in {path}")


def _not_bindable(address: Address) -> str | None:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address.host, address.port))
    except OSError as error:
        return error.strerror or str(error)
    return None


def _answers(config: Config) -> bool:
    try:
        with _asked(config, "/livez") as answer:
            return bool(answer.status == 200)
    except HTTPError as error:
        error.close()
        return False
    except (OSError, ValueError, HTTPException):
        return False


def _asked(config: Config, path: str) -> HTTPResponse:
    """The response of the monitor on this machine. Whose certificate it shows does not matter here."""
    address, tls = config.api.listen, config.api.tls
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if tls is not None and tls.client_ca is not None:
        context.load_cert_chain(tls.certificate, tls.key)
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
    answer: HTTPResponse = opener.open(f"{'http' if tls is None else 'https'}://{address.local}{path}", timeout=2.0)
    return answer


def _traffic(config: Config) -> Iterator[CheckResult]:
    """The anomalies of traffic that the running monitor reports."""
    try:
        with _asked(config, "/v1/status") as body:
            anomalies = json.load(body).get("anomalies", [])
            found = [(str(each["cause"]), str(each["remedy"])) for each in anomalies]
    except (OSError, ValueError, AttributeError, KeyError, TypeError):  # it runs, but is of another version
        return
    for cause, remedy in found:
        yield CheckResult("traffic", "warn", cause, remedy)
    if not found:
        yield CheckResult("traffic", "ok", "nothing is suspicious about what the monitor takes in")


def _contents(config: Config) -> CheckResult:
    """Who is shown contents; a proxy on this machine makes callers from elsewhere local."""
    api = config.api
    if api.contents == "always" and api.auth is None:
        found = (
            f"always: shown to whoever reaches {api.listen}, and to everybody whom a proxy on this machine lets through"
        )
        return CheckResult(
            "api.contents", "warn", found, "set api.auth, or 'loopback', which asks for the printed link"
        )
    shown = {
        "loopback": "shown to whoever opens the link that 'serve' prints; a proxy on this machine shows none to others",
        "always": "always: shown to whoever has credentials of api.auth",
        "never": "never: shown to nobody",
    }
    return CheckResult("api.contents", "ok", shown[api.contents])


def _folder_of(path: Path) -> Path:
    """The nearest folder above a file that is there."""
    return next(parent for parent in path.absolute().parents if parent.exists())


def _store(path: Path) -> Iterator[CheckResult]:
    if path.is_dir() or (path.exists() and not os.access(path, os.W_OK)):
        why = "is a folder" if path.is_dir() else "cannot be written"
        yield CheckResult("store.path", "fail", f"{path} {why}", "set store.path to a file that can be written")
        return
    folder = _folder_of(path)
    probe = folder / f".sidejudge-{time.time_ns()}"
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        why = f"{folder}: {error.strerror}"
        yield CheckResult("store.path", "fail", why, "make the folder writable, or set store.path to another file")
        return
    yield CheckResult("store.path", "ok", f"{path} can be written")
    free = shutil.disk_usage(folder).free
    remedy = "free some: sampled spans wait there until they are judged" if free < MIN_FREE_BYTES else ""
    yield _graded("disk space", f"{free / 2**30:.1f} GiB free", remedy)


_OF_HABITS = "it is read all the same; 'structured: always' holds a server to the form, where it can"


def _judges(config: Config) -> Iterator[CheckResult]:
    """Whether the judges answer: one short question is put to each model."""
    from sidejudge.monitor.evaluate.build import judge_settings
    from sidejudge.monitor.evaluate.judge.probe import try_model

    if not installed(JUDGE):
        return
    settings = judge_settings(config)
    for model in dict.fromkeys(model for each in (settings, *settings.others.values()) for model in each.models):
        probe = asyncio.run(try_model(model))
        if probe.fault is not None:
            remedy = "check evaluators.judge: model, api_base and api_key"
            yield CheckResult(f"judge {model.name}", "fail", probe.fault, remedy)
            continue
        yield CheckResult(f"judge {model.name}", "ok", "answers")
        for habit in probe.habits:
            yield CheckResult(f"judge {model.name}", "warn", habit, _OF_HABITS)
        if not probe.accounted and (model.price is None or model.price.of(1, 1)):
            found = "gives no account of its tokens (usage), so that costs and budgets go by an estimate"
            remedy = "have the server send usage, or set budgets with room: the estimate is rather too high"
            yield CheckResult(f"judge {model.name}", "warn", found, remedy)


def _embedding(section: EmbeddingSection) -> Iterator[CheckResult]:
    """Whether the model of embeddings can be loaded, or its endpoint answers: one short text is embedded."""
    from sidejudge.integrations.embed import EmbeddingError
    from sidejudge.monitor.evaluate.embedding import try_embedding

    if not installed(extra_of(section)):
        return
    subject = f"embeddings {section.model}"
    try:
        yield CheckResult(subject, "ok", f"answers with {asyncio.run(try_embedding(section))} dimensions")
    except EmbeddingError as error:
        remedy = error.remedy or "check evaluators.embedding: model and api_base"
        yield CheckResult(subject, "fail", error.cause, remedy)


def _langfuse(key: str, project: LangfuseProject, config: Config | None = None) -> CheckResult:
    """Whether Langfuse answers, what it is, and whose the keys are. Nothing is written there."""
    from sidejudge.monitor.deliver.langfuse.probe import check_server, scores_per_trace

    each = asyncio.run(check_server(key, project, scores_per_trace(config) if config is not None else None))
    return _graded(key, each.found, each.remedy, "warn" if each.works else "fail")


def _unarrived(path: Path) -> Iterator[CheckResult]:
    """Scores that Langfuse took and does not show, as the monitor's store has them."""
    from sidejudge.integrations.store.archive import read_unarrived

    try:
        found = read_unarrived(path, _MOST_NAMED)
    except StoreError:  # no monitor has run yet, or another version of it
        return
    if not found:
        yield CheckResult("scores in Langfuse", "ok", "each that was looked for is shown as it was written last")
        return
    named = ", ".join(f"{json.loads(each.body or '{}').get('name', each.id)} of {each.trace_id}" for each in found[:3])
    many = f"{len(found)} or more" if len(found) == _MOST_NAMED else str(len(found))
    stated = f"{many} are not shown as they were written: {named}"
    remedy = "they are written again; where that does not help, look into the logs of Langfuse's workers"
    yield CheckResult("scores in Langfuse", "warn", stated, remedy)


def _held(path: Path) -> Iterator[CheckResult]:
    """Scores that wait for their trace, as the monitor's store has them."""
    from sidejudge.integrations.store.archive import read_held

    try:
        scores, traces = read_held(path)
    except StoreError:  # no monitor has run yet, or another version of it
        return
    if scores:
        stated = f"{scores:,} are held back: upstream has not taken their {traces:,} traces"
        remedy = "applications send again for a while; forward.buffer keeps what forward.url does not take"
        yield CheckResult("scores in Langfuse", "warn", stated, remedy)


def _in_langfuse(loaded: Loaded) -> Iterator[CheckResult]:
    """Whether the datasets, the queue and the prompts that are named are in the project, and whether clocks agree."""
    from sidejudge.monitor.deliver.langfuse.probe import named_parts

    for each in asyncio.run(named_parts(loaded.config)):
        yield _graded(each.subject, each.found, each.remedy, "warn" if each.works else "fail")
    for prompt in loaded.prompts.snapshots():
        subject = f"prompt {prompt.name}"
        if prompt.state == "missing":
            yield CheckResult(subject, "fail", prompt.reason, "correct the name, its label or version")
        elif prompt.state == "fallback":
            remedy = "correct the name, its label or version, or wait until Langfuse answers"
            yield CheckResult(subject, "warn", f"{prompt.reason}; {prompt.used}, read before, is used", remedy)
        else:
            yield CheckResult(subject, "ok", f"{prompt.requested} was read: {prompt.used}")


def _otel_events(section: OtelEventsSink) -> CheckResult:
    """Whether the endpoint answers and accepts an empty request."""
    from sidejudge.monitor.deliver.otel_events.sink import try_endpoint

    found, remedy = asyncio.run(try_endpoint(section))
    return _graded("sinks.otel_events", found, remedy, "fail")


def _fleet(config: Config, section: FleetSection) -> Iterator[CheckResult]:
    """Whether the database of the fleet answers, and lets a monitor do what it does. Nothing is written there."""
    if not installed(FLEET):
        yield CheckResult("fleet.database", "fail", "psycopg is not installed", FLEET.remedy)
        return
    from sidejudge.monitor.alerting.build import declaration
    from sidejudge.monitor.alerting.fleet.document import REMEDY, leader_of_other_settings, settings_digest
    from sidejudge.monitor.config.rubrics import configured
    from sidejudge.monitor.fleet.probe import try_database

    found, remedy = asyncio.run(try_database(section))
    yield _graded("fleet.database", found, remedy, "fail")
    if remedy:
        return
    own = settings_digest(declaration(config), configured(config), config.sampling.hash_key)
    leader = asyncio.run(leader_of_other_settings(section, own))
    if leader is not None:
        text = f"the fleet's leader {leader} has other rubrics, thresholds, windows or randomness_key than this one"
        yield CheckResult("fleet", "warn", text, REMEDY)


def _not_notified(config: Config) -> Iterator[CheckResult]:
    from sidejudge.monitor.config.notify import names

    for name in names(config.alerts.notify):
        yield CheckResult(f"notify {name}", "ok", "configured, not tried; --notify sends it a test")


def _notified(config: Config) -> Iterator[CheckResult]:
    """Whether each receiver of alerts accepts a test notice."""
    from sidejudge.monitor.alerting.notify.build import try_receivers

    if not config.alerts.notify:
        yield CheckResult("alerts.notify", "warn", "names nobody", "add a receiver to alerts.notify")
    for name, why in asyncio.run(try_receivers(config)):
        remedy = "check its address and its secret in alerts.notify" if why is not None else ""
        yield _graded(f"notify {name}", "took a test notice" if why is None else why, remedy, "fail")
