"""Run metadata: the fourteen fields that make a run repeatable (seed 002 §4; rubrics §11)."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sidejudge.scoring.lexical.shown_text import label

REQUIRED: Mapping[str, str] = {
    "run_id": "a name of this run that no other has",
    "timestamp_utc": "when the run began, ISO 8601 in UTC: 2026-11-21T00:00:00Z",
    "dataset_id": "the name of the data set",
    "dataset_version_or_hash": "its version, or the SHA-256 of its file",
    "model_id": "the model under test, exactly: provider/model-name@version",
    "model_version": "its version, or the provider's snapshot or build id",
    "evaluator_model_id": "the judge's model, exactly: provider/model-name@version",
    "evaluator_model_version": "its version, or the provider's snapshot or build id",
    "prompt_template_id": "the name of the prompt template under test",
    "prompt_template_version_or_hash": "its version, or its SHA-256",
    "evaluator_prompt_template_version_or_hash": "of the judge's prompt",
    "generation_params": "an object of temperature, top_p, max_tokens and seed",
    "code_version": "the git SHA of the code",
    "environment": "region and runtime, as text or as an object",
}
"""All required fields with their meanings."""
DEFAULTS: Mapping[str, float] = {"temperature": 0, "top_p": 1, "max_tokens": 1024, "seed": 42}
"""Generation parameters unless intentionally overridden (§4.1)."""

_MODELS = (("model_id", "model_version"), ("evaluator_model_id", "evaluator_model_version"))
_FLOATING = re.compile(r"(?:^|[^a-z0-9])latest\s*$", re.IGNORECASE)
_NEAR = 0.8
_MOST = 1e15
"""A number beyond it, or NaN, is no setting of a model."""
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataReport:
    """The faults of a run's metadata, one sentence each, with the field and the remedy.

    ``problems`` are required fields that are missing or unusable, ``unpinned`` are model names that may mean another
    model tomorrow, ``notes`` are for readers of the results.
    """

    problems: tuple[str, ...] = ()
    unpinned: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_metadata(metadata: Mapping[str, object]) -> MetadataReport:
    """Check metadata against §4; fields beyond the required ones are ignored."""
    problems = []
    for name, meaning in REQUIRED.items():
        fault = _CHECKS.get(name, _text)(metadata.get(name))
        if metadata.get(name) is None:
            problems.append(f"{name} is missing{_misspelt(name, metadata)}; give {meaning}")
        elif fault is not None:
            problems.append(f"{name} {fault}; give {meaning}")
    params = metadata.get("generation_params")
    notes = []
    if isinstance(params, Mapping):
        problems += [f"generation_params.{fault}" for fault in _parameter_faults(params)]
        notes += _overridden(params)
    code = metadata.get("code_version")
    if isinstance(code, str) and code.strip() and not _SHA.fullmatch(code.strip()):
        notes.append(f"code_version {label(code)!r} does not look like a git SHA")
    return MetadataReport(problems=tuple(problems), unpinned=tuple(_unpinned(metadata)), notes=tuple(notes))


def _misspelt(name: str, metadata: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, [str(key) for key in metadata if key not in REQUIRED], 1, _NEAR)
    return f" ({label(near[0])!r} is no field)" if near else ""


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return None if value.strip() else "is empty"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "is not text"
    return "is a number, not text: put it in quotation marks"  # 1.10 would be read as 1.1


def _time(value: object) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return _text(value)
    try:
        found = datetime.fromisoformat(value.strip())
    except ValueError:
        return f"{label(value)!r} is not an ISO 8601 time"
    offset = found.utcoffset()
    return None if offset == timedelta(0) else f"{label(value)!r} is not in UTC"


def _object(value: object) -> str | None:
    return None if isinstance(value, Mapping) else "is not an object"


def _text_or_object(value: object) -> str | None:
    if isinstance(value, Mapping):
        return None if value else "is empty"
    return _text(value)


_CHECKS: Mapping[str, Callable[[object], str | None]] = {
    "timestamp_utc": _time,
    "generation_params": _object,
    "environment": _text_or_object,
}


def _parameter_faults(params: Mapping[str, object]) -> list[str]:
    faults = []
    for name in DEFAULTS:
        value, whole = params.get(name), name in ("max_tokens", "seed")
        if name not in params:
            faults.append(f"{name} is missing; give the value that was used" + _or_null(name))
        elif name == "seed" and value is None:
            continue  # the provider has no seeded sampling
        elif isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not abs(value) <= _MOST:
            faults.append(f"{name} is not a {'whole ' if whole else ''}number; give the value used" + _or_null(name))
        elif (name == "temperature" and value < 0) or (name == "top_p" and not 0 < value <= 1):
            faults.append(f"{name} is {value:g}; a temperature is 0 or more, top_p lies in (0, 1]")
        elif name == "max_tokens" and value < 1:
            faults.append(f"{name} is {value:d}; give the most tokens that an answer could have")
    return faults


def _or_null(name: str) -> str:
    return ", or null where the provider has no seeded sampling" if name == "seed" else ""


def _overridden(params: Mapping[str, object]) -> list[str]:
    stated = []
    for name, default in DEFAULTS.items():
        value = params.get(name, default)
        if value != default or isinstance(value, bool):
            shown = "null" if value is None else label(str(value))
            stated.append(f"generation_params.{name} is {shown}; the default is {default:g}")
    return stated


def _unpinned(metadata: Mapping[str, object]) -> list[str]:
    found = []
    for id_field, version_field in _MODELS:
        model, version = metadata.get(id_field), metadata.get(version_field)
        if not isinstance(model, str) or not model.strip():
            continue
        remedy = "pin it as provider/model-name@version"
        has_version = isinstance(version, str) and bool(version.strip())
        if _FLOATING.search(model):
            found.append(f"{id_field} {label(model)!r} is a floating alias; {remedy}")
        elif isinstance(version, str) and _FLOATING.search(version):
            found.append(f"{version_field} {label(version)!r} is a floating alias; give the snapshot or build id")
        elif not has_version and not model.partition("@")[2].strip():
            found.append(f"{id_field} {label(model)!r} has no version; {remedy}, or give {version_field}")
    return found


def template(known: Mapping[str, str]) -> str:
    """A YAML page with every field, to fill in; ``known`` are plain values that are known already."""
    lines = ["# Metadata of one run. Every field is required; the defaults of generation are in brackets."]
    for name, meaning in REQUIRED.items():
        if name == "generation_params":
            lines.append(f"{name}:")
            lines += [
                f'  {each}: ""  # the number that was used [{default:g}]{_or_null(each)}'
                for each, default in DEFAULTS.items()
            ]
        else:
            lines.append(f"{name}: {json.dumps(known[name])}" if name in known else f'{name}: ""  # {meaning}')
    return "\n".join(lines)
