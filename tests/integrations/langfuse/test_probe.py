"""The probe: each version and write mode is known by what it answers."""

from __future__ import annotations

import pytest

from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.probe import probe, release_of, version_of
from tests.fakes.langfuse.server import Mode, answer, error, login_page


@pytest.mark.parametrize(
    ("mode", "observations_v2", "legacy_reads", "takes_arrays"),
    [
        (Mode.V3, False, True, False),
        (Mode.DUAL, True, True, False),
        (Mode.EVENTS_ONLY, True, False, False),
        (Mode.NEW, True, False, True),
    ],
)
async def test_every_version_and_write_mode_is_told_apart(
    fake, client, mode, observations_v2, legacy_reads, takes_arrays
):
    fake.mode = mode
    found = await probe(client())
    assert (found.version, found.observations_v2, found.legacy_reads) == (mode.version, observations_v2, legacy_reads)
    assert (found.takes_arrays, found.scores_v3) == (takes_arrays, True)
    assert found.trace_url("abc") == f"{fake.base_url}/project/proj-test/traces/abc"
    assert found.takes_events
    assert [r.body for r in fake.requests if r.method != "GET"] == [[], {"batch": []}], "nothing is written"


@pytest.mark.parametrize(
    "absent",
    [error(404, "gone"), error(410, "gone"), error(405, "no"), error(403, "no")],
    ids=["404", "410", "405", "403"],
)
async def test_a_server_without_ingestion_is_known(fake, client, absent):
    fake.standing_fault = lambda request: absent(request) if request.path == "/ingestion" else None
    assert not (await probe(client())).takes_events


async def test_a_404_of_one_moment_is_no_server_whose_scores_cannot_be_read(fake, client):
    fake.mode, moment = Mode.NEW, [error(404, "gone")]
    fake.standing_fault = lambda request: moment.pop()(request) if moment and request.path == "/v3/scores" else None
    assert (await probe(client())).scores_v3
    assert not moment


async def test_a_server_whose_database_is_away_still_names_its_version(fake, client):
    fake.fails(error(503, status="Database not available", version="4.16.0"))
    assert await version_of(client()) == "4.16.0"


async def test_wrong_keys_are_told_from_a_wrong_address(fake, client):
    with pytest.raises(LangfuseError) as refused:
        await probe(client(secret_key="sk-lf-other"))
    assert refused.value.kind is LangfuseErrorKind.KEYS_REFUSED
    for other in (login_page(), lambda _: answer({"hello": "world"})):
        fake.fails(other)
        with pytest.raises(LangfuseError) as refused:
            await probe(client())
        assert refused.value.kind is LangfuseErrorKind.NOT_LANGFUSE


async def test_keys_without_a_project_are_told_what_they_lack(fake, client):
    fake.fails(lambda _: None, lambda _: answer({"data": []}))
    with pytest.raises(LangfuseError, match="use keys of a project"):
        await probe(client())


@pytest.mark.parametrize(
    ("version", "release"),
    [("4.16.0", (4, 16)), ("v4.59.1-rc.2", (4, 59)), ("3.225", (3, 225)), ("main", None), (None, None), ("4", None)],
)
def test_releases_are_read_from_versions(version, release):
    assert release_of(version) == release
