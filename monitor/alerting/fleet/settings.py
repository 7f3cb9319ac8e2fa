"""Whether a monitor watches by the settings of the fleet's leader: thresholds, windows and rubrics."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from typing import Final

from sidejudge.integrations.postgres import schema, shared
from sidejudge.integrations.postgres.database import Database
from sidejudge.integrations.postgres.errors import DatabaseError
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.scoring.alerts.declaration import Declaration

from .document import DOCUMENT, read_document

REMEDY: Final = "where these are two fleets, give one another fleet.schema_name, else roll one configuration out to all"


def settings_digest(declared: Declaration, rubrics: Iterable[str]) -> str:
    """A digest that is equal where thresholds, windows and rubrics are."""
    settings = (declared.window_ns, declared.longest_ns, declared.policy, sorted(rubrics))
    return hashlib.blake2b(repr(settings).encode(), digest_size=8).hexdigest()


def leader_of_other_settings(section: FleetSection, digest: str) -> str | None:
    """The leader that watches by other settings than these; None where there is none or nothing is known."""
    return asyncio.run(_leader(section, digest))


async def _leader(section: FleetSection, digest: str) -> str | None:
    database = Database(
        section.database.get_secret_value(), schema=section.schema_name, timeout_s=section.timeout.seconds
    )
    try:
        async with database.transaction() as transaction:
            if not (await schema.version_of(transaction)).version:
                return None
            found = (await shared.load(transaction, [DOCUMENT])).get(DOCUMENT)
        document = read_document(found.body) if found is not None else None
    except (DatabaseError, ValueError):  # whether the database answers is another question
        return None
    finally:
        database.close()
    return document.leader if document is not None and document.watches not in (None, digest) else None
