"""Keys that components of the Collector know, as far as the charts' configurations use them, with the type of each.

From what the components publish: contrib 0.154 (loadbalancing, groupbytrace, health_check), core 0.154 (the rest).
"""

from __future__ import annotations

import re
from typing import Any

_DURATION = re.compile(r"[0-9]+(ms|s|m|h)").fullmatch
_ENDPOINT = re.compile(r"\S+:[0-9]+").fullmatch


def duration(value: Any) -> bool:
    return isinstance(value, str) and _DURATION(value) is not None


def endpoint(value: Any) -> bool:
    return isinstance(value, str) and _ENDPOINT(value) is not None


def text(value: Any) -> bool:
    return isinstance(value, str)


def number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def percentage(value: Any) -> bool:
    return number(value) and 0 < value <= 100


def truth(value: Any) -> bool:
    return isinstance(value, bool)


def texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(text, value))


def routing_key(value: Any) -> bool:
    """Of those that traces and logs may both be routed by."""
    return value in ("traceID", "service", "attributes")


RETRY = {"enabled": truth, "initial_interval": duration, "max_interval": duration, "max_elapsed_time": duration}
QUEUE = {"enabled": truth, "queue_size": number, "num_consumers": number}
TLS = {"insecure": truth}
OTLP = {"tls": TLS, "timeout": duration, "retry_on_failure": RETRY, "sending_queue": QUEUE}
KEYS: dict[str, dict[str, Any]] = {
    "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": endpoint}, "http": {"endpoint": endpoint}}}},
    "processors": {
        "memory_limiter": {
            "check_interval": duration, "limit_percentage": percentage, "spike_limit_percentage": percentage,
        },
        "groupbytrace": {"wait_duration": duration, "num_traces": number},
    },
    "exporters": {
        "otlphttp": {"endpoint": text, "headers": None},
        "loadbalancing": {
            "routing_key": routing_key, "routing_attributes": texts, "timeout": duration,
            "retry_on_failure": RETRY, "sending_queue": QUEUE, "protocol": {"otlp": OTLP},
            "resolver": {"dns": {"hostname": text, "port": text, "interval": duration, "timeout": duration}},
        },
    },
    "extensions": {"health_check": {"endpoint": endpoint}},
}  # fmt: skip


def wrong(config: dict[str, Any]) -> list[str]:
    """What a Collector would refuse in a configuration: keys it does not know, types, and names that lead nowhere."""
    found = [f"{kind} is not a section" for kind in config.keys() - {*KEYS, "service"}]
    for kind, known in KEYS.items():
        for name, given in config.get(kind, {}).items():
            of = name.partition("/")[0]
            found += _against(given, known[of], f"{kind}.{name}") if of in known else [f"{kind}.{name} is unknown"]
    found += _wrong_pipelines(config)
    for name, exporter in config["exporters"].items():
        if name.startswith("loadbalancing"):
            by_attributes = exporter["routing_key"] == "attributes"
            if by_attributes is not bool(exporter.get("routing_attributes")):
                found.append(f"{name}: routing_attributes go with routing_key attributes")
            below = exporter["protocol"]["otlp"]
            if below["sending_queue"]["enabled"] or below["retry_on_failure"]["enabled"]:
                found.append(f"{name}: what a Pod's own queue holds is lost when the Pod goes")
    return found


def _wrong_pipelines(config: dict[str, Any]) -> list[str]:
    found = []
    service = config["service"]
    found += [
        f"extension {name} is not declared"
        for name in service.get("extensions", ())
        if name not in config["extensions"]
    ]
    for pipeline, parts in service["pipelines"].items():
        if pipeline.partition("/")[0] not in ("traces", "logs", "metrics"):
            found.append(f"pipeline {pipeline} is of no signal")
        for kind, names in parts.items():
            found += [
                f"{pipeline}: {kind}.{name} is not declared" for name in names if name not in config.get(kind, {})
            ]
        if parts.get("processors", [""])[:1] not in (["memory_limiter"], [""]):
            found.append(f"{pipeline}: memory_limiter comes first")
    return found


def _against(given: Any, known: Any, path: str) -> list[str]:
    if known is None:
        return []
    if callable(known):
        return [] if known(given) else [f"{path}: {given!r}"]
    if not isinstance(given, dict):
        return [f"{path} has no keys"]
    return [
        problem
        for key, value in given.items()
        for problem in (_against(value, known[key], f"{path}.{key}") if key in known else [f"{path}.{key} is unknown"])
    ]
