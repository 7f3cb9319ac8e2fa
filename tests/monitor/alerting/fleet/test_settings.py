"""A configuration is held against the leader's before a monitor runs by it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sidejudge.integrations.postgres import schema, shared
from sidejudge.integrations.postgres.database import Database
from sidejudge.integrations.postgres.leases import Leases
from sidejudge.monitor.alerting.build import declaration
from sidejudge.monitor.alerting.fleet.document import DOCUMENT, REMEDY, FleetDocument, settings_digest
from sidejudge.monitor.cli.doctor_checks import CheckResult, reached
from sidejudge.monitor.config.load import resolve
from sidejudge.monitor.config.rubrics import configured
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.status import Thresholds
from tests.postgres_server import PostgresServer


async def publish(database: Database, body: bytes) -> None:
    leases = Leases("m0", ttl_s=60)
    async with database.transaction() as transaction:
        held = await leases.take(transaction, ["alerts"])
        await shared.save(transaction, held["alerts"], {DOCUMENT: body})


async def test_doctor_names_a_leader_with_other_settings_and_none_with_the_same(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.url(postgres.new_database())
    (tmp_path / "s.yaml").write_text(f"fleet: {{database: '{url}'}}\nalerts: {{min_samples: 40}}\n")
    loaded = resolve(tmp_path / "s.yaml", {})
    own = settings_digest(declaration(loaded.config), configured(loaded.config), b"")
    keyed = settings_digest(declaration(loaded.config), configured(loaded.config), b"a key")
    database = Database(url)

    async def found() -> list[CheckResult]:
        return [each for each in await asyncio.to_thread(lambda: list(reached(loaded))) if each.subject == "fleet"]

    assert await found() == [], "without tables"
    await schema.migrate(database)
    assert await found() == [], "without a leader"
    for watches, other in ((own, False), (None, False), ("another", True), (keyed, True)):
        await publish(database, FleetDocument(at_ns=1, leader="m0", watches=watches).encoded())
        text = "the fleet's leader m0 has other rubrics, thresholds, windows or randomness_key than this one"
        assert await found() == ([CheckResult("fleet", "warn", text, REMEDY)] if other else [])
    await publish(database, b"of another version")
    assert await found() == []
    database.close()


def test_a_rubric_with_thresholds_of_its_own_is_another_setting_and_one_with_those_of_all_is_none() -> None:
    def digest(**own: Thresholds) -> str:
        return settings_digest(Declaration(thresholds=own), ["qa", "answer"], b"")

    assert digest(qa=Thresholds()) == digest()
    assert digest(qa=Thresholds(warning=0.9)) not in (digest(), digest(answer=Thresholds(warning=0.9)))
    assert digest(qa=Thresholds(warning=0.9), answer=Thresholds()) == digest(qa=Thresholds(warning=0.9))
