"""Renamed keys: configuration with old keys in, the same configuration with their new names out.

An old key, or an old value of one, is read for one version. Every command warns about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from .alerts import AlertsSection
from .document import Document, Location
from .errors import Problem

RENAMED: Final[Mapping[str, str]] = {"answerers": "evaluators"}
"""Old key → new key, both at the top of the configuration."""
RENAMED_IN_LISTS: Final[Mapping[tuple[str, str], str]] = {("references", "revise_within"): "reevaluate_within"}
"""List at the top of the configuration and old key of its items → new key."""


def rename_keys(document: Document, source: str) -> tuple[str, ...]:
    """Rename old keys of a document in place, values and line numbers alike.

    Args:
        document: a problem is added where it holds both the old and the new key.
        source: the file's name, for problems.

    Returns:
        The old keys that were found.
    """
    if not isinstance(document.value, dict):
        return ()
    found = tuple(old for old in RENAMED if old in document.value)
    for old in found:
        new, line = RENAMED[old], document.lines.get((old,))
        if new in document.value:
            message = f"is the old name of {new}, which is set too; keep {new} alone"
            document.problems.append(Problem(path=old, message=message, source=source, line=line))
            del document.value[old]
            continue
        document.value = {new if key == old else key: value for key, value in document.value.items()}
        document.lines = {_renamed(at, old, new): number for at, number in document.lines.items()}
    return found


def rename_keys_in_lists(document: Document, source: str) -> list[tuple[str, str]]:
    """The same for keys of the items of lists; returns old and new key of each, as they are shown to people."""
    found = []
    for (section, old), new in RENAMED_IN_LISTS.items():
        items = document.value.get(section) if isinstance(document.value, dict) else None
        for number, item in enumerate(items if isinstance(items, list) else ()):
            if not isinstance(item, dict) or old not in item:
                continue
            shown, at = f"{section}[{number}].{old}", (section, number, old)
            value, line = item.pop(old), document.lines.pop(at, None)
            if new in item:
                message = f"is the old name of {new}, which is set too; keep {new} alone"
                document.problems.append(Problem(path=shown, message=message, source=source, line=line))
                continue
            item[new] = value
            if line is not None:
                document.lines[section, number, new] = line
            found.append((shown, f"{section}[{number}].{new}"))
    return found


def old_mode(alerts: AlertsSection) -> Iterator[tuple[str, str]]:
    """(cause, remedy) where the mode of alerts has its old name `sequence`, or where its settings stand alone."""
    if alerts.mode == "sequence":
        rate, old = f"alerts.false_alarms_per_month: {alerts.false_alarms:.4g}", alerts.sequence
        given = "false_alarms_per_month" in alerts.model_fields_set
        source = "" if given else f", for alerts.sequence promises an error of {old.error:g} in {old.period}"
        yield (
            f"alerts.mode: sequence is the old name of adaptive, which is in force with {rate}{source}",
            f"set alerts.mode: adaptive and {rate}, and take alerts.sequence out; the next version reads neither",
        )
    elif "sequence" in alerts.model_fields_set:
        yield (f"alerts.sequence does nothing in mode {alerts.mode}", "take it out; the next version does not read it")


def _renamed(at: Location, old: str, new: str) -> Location:
    return (new, *at[1:]) if at[:1] == (old,) else at
