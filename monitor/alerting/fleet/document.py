"""The document that the leader writes and every monitor shows: the statuses and alerts of the fleet.

Whether a monitor watches by the settings of the fleet's leader: thresholds, windows and rubrics.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from sidejudge.integrations.postgres import schema, shared
from sidejudge.integrations.postgres.database import DatabaseError
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.monitor.fleet.fleet import database_of
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import ServiceStatus

DOCUMENT: Final = "alerts/status"
"""The name of the state that holds it."""
MOST_BYTES: Final = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDocument:
    """The fleet at ``at_ns``, by the monitor ``leader``.

    ``alerts`` and ``sent`` are alerts and events in their JSON form; ``sent`` are those that receivers have got.
    ``metrics`` are continuous metrics under their limits; None: by a leader of a version that does not watch them.
    ``shares`` counts the decided verdicts within the window, by monitor.
    ``watches`` is a digest of thresholds, windows and rubrics that the leader watches by.
    """

    at_ns: int
    leader: str
    services: Sequence[ServiceStatus] = ()
    metrics: Sequence[MetricStatus] | None = None
    alerts: Sequence[Mapping[str, object]] = ()
    sent: Sequence[Mapping[str, object]] = ()
    shares: Mapping[str, int] = field(default_factory=dict)
    watches: str | None = None

    def encoded(self) -> bytes:
        """For the database."""
        return zlib.compress(msgspec.json.encode(self), 6)


def read_document(body: bytes) -> FleetDocument:
    """Read what ``encoded`` wrote, by this version or another; ``ValueError`` for anything else."""
    opened = zlib.decompressobj()
    try:
        text = opened.decompress(body, MOST_BYTES)
        return msgspec.json.decode(text, type=FleetDocument)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(f"not a status of the fleet: {error}") from error


REMEDY: Final = "where these are two fleets, give one another fleet.schema_name, else roll one configuration out to all"


def settings_digest(declared: Declaration, rubrics: Iterable[str], hash_key: bytes) -> str:
    """A digest that is equal where thresholds, windows, rubrics and the key that traces are drawn by are."""
    common = declared.policy.thresholds
    own = sorted((name, repr(each)) for name, each in declared.thresholds.items() if each != common)
    settings = (declared.window_ns, declared.longest_ns, declared.policy, sorted(rubrics), *own)
    return hashlib.blake2b(repr(settings).encode(), digest_size=8, key=hash_key).hexdigest()


async def leader_of_other_settings(section: FleetSection, digest: str) -> str | None:
    """The leader that watches by other settings than these; None where there is none or nothing is known."""
    database = database_of(section)
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
