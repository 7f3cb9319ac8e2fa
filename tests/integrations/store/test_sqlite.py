"""The store: what it acknowledged is there, what it refused is not, and what it cannot do it says."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import tracemalloc
from contextlib import closing
from dataclasses import dataclass, replace

import pytest

from sidejudge.integrations.store import sqlite
from sidejudge.integrations.store.archive import read_details
from sidejudge.integrations.store.bounded_read import read_courses
from sidejudge.integrations.store.connection import add_functions, queries, schema, select
from sidejudge.integrations.store.sqlite import FinishedTrace, Store, StoreCorrupt, StoreError, StoreUnavailable
from sidejudge.integrations.store.verdict_search import VerdictFilter, search_verdicts
from sidejudge.scoring.lexical.shown_text import clean, label_of

A, B = b"a" * 16, b"b" * 16


@dataclass(frozen=True)
class Origin:
    service: str | None = "shop"
    environment: str | None = "prod"
    threshold: int = 7


@dataclass(frozen=True)
class Chunk:
    trace_id: bytes
    payload: bytes
    origin: Origin = Origin()


def verdict(rubric="qa", **more):
    return {"rubric": rubric, "service": "shop", "environment": "prod", "passed": True, **more}


def finished(**more):
    return FinishedTrace(
        **{
            "trace_id": A, "service": "shop", "reason": "scored", "completion": "root_ended", "revision": 1,
            "details": {"spans": 3}, "verdicts": [verdict()], "closed_ns": 100, **more,
        }
    )  # fmt: skip


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path / "state" / "s.sqlite")
    yield opened
    opened.close()


async def test_what_is_appended_is_committed_and_in_order(store):
    await store.append([Chunk(A, b"1"), Chunk(B, b"x")], 10)
    await store.append([Chunk(A, b"2")], 11)
    with closing(sqlite3.connect(store.path)) as other, other:
        assert other.execute("SELECT count(*) FROM chunks").fetchone() == (3,)
    other.close()
    assert store.chunks(A) == store.chunks(A.hex()) == [b"1", b"2"]
    assert store.open_traces() == {A, B}
    await store.append([], 12)


async def test_many_at_once_share_commits_and_are_all_there(store):
    await asyncio.gather(*(store.append([Chunk(A, b"%d" % n)], n) for n in range(2_000)))
    assert len(store.chunks(A)) == 2_000


async def test_finishing_is_one_story_and_its_verdicts_and_doing_it_again_changes_nothing(store):
    await store.append([Chunk(A, b"1")], 10)
    for _ in range(2):
        await store.finish(finished())
        assert store.open_traces() == set()
        assert [v["rubric"] for v in store.verdicts()] == ["qa"]
        story = store.details(A.hex())
        assert {k: story[k] for k in ("trace_id", "reason", "completion", "revision", "spans", "closed_ns")} == {
            "trace_id": A.hex(), "reason": "scored", "completion": "root_ended",
            "revision": 1, "spans": 3, "closed_ns": 100,
        }  # fmt: skip
        assert [v["rubric"] for v in story["verdicts"]] == ["qa"]
    assert store.details(B) is None
    assert store.chunks(A) == [b"1"]


async def test_a_revision_replaces_and_an_older_one_that_comes_late_does_not(store):
    await store.finish(finished(verdicts=[verdict(), verdict("entity")]))
    await store.finish(finished(revision=2, closed_ns=200, verdicts=[verdict(passed=False)]))
    await store.finish(finished())
    assert [(v["rubric"], v["passed"]) for v in store.verdicts()] == [("qa", False)]
    assert store.details(A)["revision"] == 2


async def test_a_chunk_that_came_while_its_trace_was_judged_stays_open(store):
    await store.append([Chunk(A, b"1")], 10)
    read = store.chunks(A)
    await store.append([Chunk(A, b"late")], 11)
    await store.finish(finished(chunks=len(read)))
    assert store.open_traces() == {A}
    assert [(c.payload, c.done, c.revision) for c in store.recover()] == [(b"1", True, 1), (b"late", False, 1)]


async def test_a_restart_finds_what_was_open_and_what_was_finished(store):
    await store.append([Chunk(A, b"1"), Chunk(B, b"2", Origin(None, None, 1 << 56))], 10)
    await store.finish(finished())
    store.close()
    again = Store(store.path)
    found = {c.trace_id: c for c in again.recover()}
    again.close()
    assert (found[A].done, found[A].revision, found[A].closed_ns) == (True, 1, 100)
    assert (found[B].done, found[B].revision, found[B].received_ns) == (False, None, 10)
    assert (found[B].service, found[B].environment, found[B].threshold) == (None, None, 1 << 56)


async def test_verdicts_are_filtered_and_paged_newest_first(store):
    for n in range(6):
        await store.finish(finished(
            trace_id=bytes([n]) * 16, closed_ns=n,
            verdicts=[verdict(passed=[True, False, None][n % 3], service="ab"[n % 2], n=n)],
        ))  # fmt: skip
    assert [v["n"] for v in store.verdicts()] == [5, 4, 3, 2, 1, 0]
    assert [v["n"] for v in store.verdicts(passed="false")] == [4, 1]
    assert [v["n"] for v in store.verdicts(service="a", rubric="qa", environment="prod")] == [4, 2, 0]
    assert [v["n"] for v in store.verdicts(limit=2, after=(4, "00" * 16, ""))] == [3, 2]
    assert [v["closed_ns"] for v in store.verdicts(limit=1)] == [5]
    assert store.verdicts(rubric="' OR 1=1 --") == []
    assert [v["n"] for v in store.verdicts_since(3)] == [3, 4, 5]


async def test_what_fills_windows_at_a_start_is_read_one_by_one(store):
    for n in range(100):
        await store.finish(finished(
            trace_id=bytes([n]) * 16, closed_ns=n, details={"figures": {"text": "x" * 20_000}},
            verdicts=[verdict(passed=True, service="a", n=n, reason="r" * 20_000)],
        ))  # fmt: skip
    for rows in (store.verdicts_since, store.figures_since):
        tracemalloc.start()
        assert sum(1 for _ in rows(0)) == 100
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 500_000, "of two megabytes"


async def test_purging_takes_what_is_old_and_never_what_waits(store):
    await store.append([Chunk(A, b"1"), Chunk(B, b"1")], 10)
    await store.finish(finished())
    await store.finish(finished(trace_id=B))
    await store.append([Chunk(B, b"late")], 150)
    await store.purge(0, chunks_before_ns=200)
    assert store.chunks(A) == []
    assert store.chunks(B) == [b"1", b"late"]
    assert store.details(A) is not None
    await store.purge(200)
    assert store.details(A) is None
    assert store.details(B) is not None, "a trace that waits for its next revision keeps its number"
    assert len(store.verdicts()) == 1, "and, until then, its verdicts"


async def test_while_it_is_purged_a_trace_is_there_with_all_its_verdicts_or_not_at_all(store, monkeypatch):
    monkeypatch.setattr(sqlite, "SLICE", 8)
    for n in range(5):
        both = [verdict(passed=True, rubric=rubric) for rubric in ("qa", "workflow")]
        await store.finish(finished(trace_id=bytes([n]) * 16, closed_ns=n, verdicts=both))
    seen: list[list[int]] = []
    for writes, name in ((store._writer, "do"), (store, "_write")):

        async def watched(work, do=store._writer.do):
            done = await do(work)
            seen.append([len(trace["verdicts"]) for trace in store.traces()])
            return done

        monkeypatch.setattr(writes, name, watched)
    await store.purge(4)
    assert [2, 2, 2] in seen
    assert [2] in seen
    assert {count for each in seen for count in each} == {2}


async def test_verdicts_whose_trace_is_not_there_are_purged_by_their_age(store):
    await store.finish(finished())
    with closing(sqlite3.connect(store.path)) as salvaged, salvaged:
        salvaged.execute("DELETE FROM traces")
    await store.purge(200)
    assert store.verdicts() == []


@pytest.mark.parametrize(
    "read",
    [
        lambda store: store.details(A),
        lambda store: read_details(store.path, A.hex()),
        lambda store: search_verdicts(store.path, VerdictFilter(), after=None, limit=9),
        lambda store: read_courses(store.path, 0, 999),
    ],
    ids=["details", "archive", "search", "courses"],
)
async def test_what_is_shown_together_is_of_one_moment(store, monkeypatch, read):
    await store.finish(finished(verdicts=[verdict(scores=[{"metric": "tone", "value": 1.0}])]))
    undisturbed, connect, statements = read(store), sqlite3.connect, []

    def purge(statement):
        statements.extend([statement] if "SELECT" in statement else [])
        if len(statements) > 1:
            with closing(connect(store.path)) as other, other:
                other.execute("DELETE FROM verdicts")

    def watched(*at, **how):
        connection = connect(*at, **how)
        connection.set_trace_callback(purge)
        return connection

    monkeypatch.setattr(sqlite3, "connect", watched)
    store._reading.set_trace_callback(purge)
    assert read(store) == undisturbed
    assert store.verdicts() == []


async def test_purging_leaves_the_chunks_of_what_is_spared_this_time(store):
    await store.append([Chunk(A, b"1"), Chunk(B, b"1")], 10)
    await store.finish(finished())
    await store.finish(finished(trace_id=B))
    await store.purge(0, chunks_before_ns=200, spared=[A])
    assert (store.chunks(A), store.chunks(B)) == ([b"1"], [])
    await store.purge(0, chunks_before_ns=200)
    assert store.chunks(A) == []


async def test_purging_gives_the_disk_back(store):
    for n in range(30):
        await store.append([Chunk(n.to_bytes(16, "big"), bytes(100_000)) for _ in range(3)], n)
        await store.finish(finished(trace_id=n.to_bytes(16, "big")))
    pages = store._write_connection.execute("PRAGMA page_count").fetchone()[0]
    await store.purge(0, chunks_before_ns=101)
    assert store._write_connection.execute("PRAGMA page_count").fetchone()[0] < pages / 10
    assert list(store.recover()) == []


async def test_purging_many_rows_goes_in_slices(store):
    await store.append([Chunk(A, b"x")] * 2_500 + [Chunk(B, b"x")] * 2_500, 1)
    await store.finish(finished(verdicts=[verdict(f"r{n}") for n in range(1_500)]))
    await store.purge(101)
    assert (store.chunks(A), len(store.chunks(B)), store.verdicts(), store.details(A)) == ([], 2_500, [], None)


async def test_untrusted_text_is_kept_as_it_is(store):
    odd = {"text": "\ud800 \x00 ' \" 🎧", "big": 2**80}
    await store.finish(finished(details=odd, service="\u2028", verdicts=[verdict(reason="\udfff")]))
    story = store.details(A)
    assert {k: story[k] for k in odd} == odd
    assert story["verdicts"][0]["reason"] == "\udfff"


async def test_one_jobs_bad_data_does_not_harm_the_others(store):
    bad = replace(finished(), revision=2**70)
    results = await asyncio.gather(
        store.append([Chunk(A, b"1")], 1), store.finish(bad), store.append([Chunk(B, b"2")], 2), return_exceptions=True
    )
    assert [type(r) for r in results] == [type(None), StoreError, type(None)]
    assert (store.chunks(A), store.chunks(B), store.details(A)) == ([b"1"], [b"2"], None)


async def test_of_several_ends_each_is_written_or_refused_on_its_own(store):
    await store.append([Chunk(A, b"1"), Chunk(B, b"2")], 1)
    bad = finished(trace_id=B, verdicts=[verdict(), verdict("entity", passed=2**70)])
    refusals = await store.finish_each([finished(), bad, finished(trace_id=b"c" * 16)])
    assert [type(each) for each in refusals] == [type(None), StoreError, type(None)]
    assert (store.details(A)["revision"], store.details(B), store.details(b"c" * 16)["revision"]) == (1, None, 1)
    assert (len(store.verdicts()), store.open_traces()) == (2, {B})
    assert await store.finish_each([]) == []


async def test_an_older_end_that_comes_late_opens_nothing_again(store):
    await store.append([Chunk(A, b"1")], 1)
    await store.append([Chunk(A, b"2")], 2)
    await store.finish(finished(revision=2, chunks=2))
    await store.finish(finished(chunks=1))
    assert store.open_traces() == set()
    await store.append([Chunk(B, b"1")], 3)
    await store.finish(finished(trace_id=B, revision=2, chunks=0))
    await store.finish(finished(trace_id=B, chunks=1))
    assert (store.open_traces(), store.details(B)["revision"]) == (set(), 2), "nor is what it was reached with unread"


async def test_what_came_after_everything_before_was_purged_is_not_taken_for_what_was_judged(store):
    await store.append([Chunk(A, b"1"), Chunk(A, b"2")], 1)
    await store.finish(finished())
    await store.purge(0, chunks_before_ns=200)
    assert (store.chunks(A), store.holds_judged(A)) == ([], False)
    await store.append([Chunk(A, b"late")], 300)
    assert (store.open_traces(), store.holds_judged(A)) == ({A}, False)


async def test_several_traces_are_read_at_once_as_each_by_itself(store):
    c, purged, unknown = b"c" * 16, b"d" * 16, b"e" * 16
    await store.append([Chunk(purged, b"0")], 1)
    await store.finish(finished(trace_id=purged, verdicts=[verdict()]))
    await store.purge(0, chunks_before_ns=200)
    await store.append([Chunk(A, b"1"), Chunk(B, b"2"), Chunk(A, b"3"), Chunk(c, b"4")], 300)
    await store.finish(finished(verdicts=[verdict(), verdict("entity")]))
    await store.append([Chunk(A, b"late")], 301)
    wanted = [A, unknown, B, purged, c]
    read = store.chunks_and_stories(wanted)
    assert read == [(store.chunks(each), store.details(each)) for each in wanted]
    assert [len(chunks) for chunks, _ in read] == [3, 0, 1, 0, 1]
    assert [story is not None for _, story in read] == [True, False, False, True, False]
    assert store.chunks_and_stories([]) == []


async def test_after_a_failure_several_are_read_again(store):
    await store.append([Chunk(A, b"1")], 1)
    with pytest.raises(StoreError):
        store.chunks_and_stories([A, object()])
    assert store.chunks_and_stories([A]) == [([b"1"], None)]
    await store.append([Chunk(A, b"2")], 2)
    assert store.chunks_and_stories([A]) == [([b"1", b"2"], None)]
    store.close()
    with pytest.raises(StoreUnavailable):
        store.chunks_and_stories([A])


async def test_a_store_of_the_version_before_chunks_were_written_once_is_taken_up_as_it_was(tmp_path):
    path, c, d = tmp_path / "s.sqlite", b"c" * 16, b"d" * 16
    with closing(sqlite3.connect(path)) as before, before:
        for version in range(1, 9):
            before.executescript(schema(version))
        before.execute("PRAGMA user_version = 8")
        before.executemany(
            "INSERT INTO traces (trace_id, closed_ns, revision, reason, completion, story)"
            " VALUES (?, 100, 1, '', '', '')",
            [(A,), (B,)],
        )
        # A was judged with two, a third came late. B was judged, then a log record came. C is open. D is a record.
        before.executemany(
            "INSERT INTO chunks (seq, trace_id, received_ns, done_ns, threshold, payload) VALUES (?, ?, ?, ?, 0, ?)",
            [
                (3, A, 10, 100, b"1"), (4, c, 10, None, b"1"), (5, A, 11, 100, b"2"), (6, B, 12, 100, b"1"),
                (7, A, 150, None, b"late"), (8, B, 160, 160, b"log"), (9, d, 170, 170, b"log"),
            ],
        )  # fmt: skip
    before.close()
    store = Store(path)
    assert store.open_traces() == {A, c}
    assert [(each.trace_id, each.payload, each.done, each.closed_ns) for each in store.recover()] == [
        (A, b"1", True, 100), (A, b"2", True, 100), (A, b"late", False, 100),
        (B, b"1", True, 100), (B, b"log", True, 100),
        (c, b"1", False, None), (d, b"log", True, None),
    ]  # fmt: skip
    assert [store.holds_judged(each) for each in (A, B, c, d)] == [True, True, False, False]
    await store.purge(0, chunks_before_ns=165)
    assert {each.trace_id for each in store.recover()} == {A, c, d}, "B and its record are old, A waits, D is young"
    await store.append([Chunk(B, b"later")], 200)
    await store.finish(finished(trace_id=A, revision=2, closed_ns=300, chunks=3))
    assert store.open_traces() == {B, c}
    store.close()


async def test_a_full_disk_is_named_and_passes(store):
    await store.append([Chunk(A, b"1")], 1)
    store._write_connection.execute("PRAGMA max_page_count = 20")
    with pytest.raises(StoreUnavailable, match=r"s\.sqlite.*full.*free space"):
        await store.append([Chunk(B, bytes(1 << 20))], 2)
    store._write_connection.execute("PRAGMA max_page_count = 100000")
    await store.append([Chunk(B, bytes(1 << 20))], 2)
    assert store.open_traces() == {A, B}


async def test_a_lock_held_for_a_moment_is_waited_for(store):
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(store.append([Chunk(A, b"1")], 1))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    other.execute("COMMIT")
    other.close()
    await waiting
    assert store.chunks(A) == [b"1"]


async def test_a_closed_store_refuses_and_closing_twice_is_closing(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    waiting = [asyncio.ensure_future(store.append([Chunk(A, b"1")], 1)) for _ in range(50)]
    await asyncio.sleep(0)
    store.close()
    store.close()
    await asyncio.gather(*waiting)
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.append([Chunk(A, b"1")], 1)
    with pytest.raises(StoreUnavailable, match="closed"):
        store.chunks(A)
    again = Store(store.path)
    assert len(again.chunks(A)) == 50
    again.close()


@pytest.mark.parametrize(
    "content",
    [b"this is not a database, but it is long enough to look like one" * 50, b"SQLite format 3\0" + b"\xff" * 9000],
)
def test_a_damaged_file_is_named_with_the_remedy(tmp_path, content):
    path = tmp_path / "s.sqlite"
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match=r"s\.sqlite") as raised:
        Store(path)
    assert "move it away" in str(raised.value)


@pytest.mark.parametrize("statement", ["PRAGMA user_version = 99", "CREATE TABLE theirs (x)"])
def test_a_database_of_another_version_or_program_is_left_alone(tmp_path, statement):
    path = tmp_path / "s.sqlite"
    other = sqlite3.connect(path)
    other.execute(statement)
    other.commit()
    other.close()
    with pytest.raises(StoreCorrupt, match="schema version"):
        Store(path)


def test_a_path_that_cannot_be_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match=r"store\.path"):
        Store(tmp_path / "file" / "s.sqlite")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreUnavailable, match="folder"):
        Store(tmp_path / "folder")


def test_closing_twice_closes_nobody_elses_file(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    store.close()
    with (tmp_path / "other").open("wb") as other:  # takes the number that the lock had
        store.close()
        other.write(b"still open")


async def test_the_size_on_disk_is_told(store):
    before = store.size
    await store.append([Chunk(A, bytes(1 << 20))], 1)
    assert store.size >= before + (1 << 20)


def test_only_its_owner_may_read_a_new_store(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    store.close()
    modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(modes, 0)


def test_no_statement_numbers_its_parameters():
    """Early versions of Python 3.12 take ``?7`` for a name, and warn of a row that is no mapping."""
    assert [name for name, text in queries().items() if re.search(r"\?\d", text)] == []


def steps(store, name, **values) -> int:
    """How many steps of its machine SQLite takes for a statement."""
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    with closing(sqlite3.connect(store.path)) as connection:
        connection.create_function("folded", 1, str)
        add_functions(connection)
        connection.set_progress_handler(step, 1)
        select(connection, name, values).fetchall()
    return count


async def test_a_purge_looks_at_each_turn_once_however_long_its_session_is(store):
    def sessions(count: int, turns: int) -> int:
        with closing(sqlite3.connect(store.path)) as connection, connection:
            connection.execute("DELETE FROM turns")
            for session in range(count):
                for turn in range(turns):
                    done_ns = 50 if turn < turns - 1 else None  # judged, and gone on
                    connection.execute(
                        "INSERT INTO turns (trace_id, session_key, session_id, closed_ns, done_ns, turn) "
                        "VALUES (randomblob(16), ?, 's', 60, ?, '{}')", (bytes([session]) * 16, done_ns),
                    )  # fmt: skip
        return steps(store, "purge_turns", before=100, abandoned=10, limit=500)

    assert sessions(1, 200) <= 1.2 * sessions(20, 10)
    await store.purge_turns(100, 10)
    assert len(store.recover_turns()) == 200, "all go on"
    await store.purge_turns(100, 61)
    assert not store.recover_turns(), "nobody has judged them"


async def test_a_purge_finds_the_turns_to_delete_without_what_was_written_in_them(store):
    with closing(sqlite3.connect(store.path)) as connection:
        wanted = {"before": 100, "abandoned": 10, "limit": 500}
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {queries()['purge_turns']}", wanted)]
    assert [step for step in plan if step.startswith("SCAN") and "COVERING INDEX" not in step] == []


def filters(name: str) -> dict[str, object]:
    """The parameters of a statement, each not given."""
    return dict.fromkeys(re.findall(r":([a-z_]+)", re.sub("'.*?'", "", queries()[name])))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        pytest.param(name, {by: value}, id=f"{name} by {by}")
        for name in (
            "recent_verdicts", "search_verdicts", "count_columns", "count_verdicts", "failed_verdicts", "compared"
        )
        for by, value in {"service": "nobody", "rubric": "none", "trace_id": A, "since": 900, "until": 0}.items()
        if by in filters(name)
    ]
    + [pytest.param(name, {"passed": "false"}, id=f"{name} failed") for name in ("recent_verdicts", "search_verdicts")],
)  # fmt: skip
async def test_what_no_verdict_matches_is_found_without_a_look_at_all_that_are_kept(store, name, given):
    values = {**filters(name), "limit": 100, "most": 20_000, "failed": 100, **given}
    if name == "compared":
        values |= {key: value for key, value in {"since": 0, "until": 900}.items() if values[key] is None}

    def kept(count: int) -> int:
        with closing(sqlite3.connect(store.path)) as connection, connection:
            connection.execute("DELETE FROM verdicts")
            connection.executemany(
                "INSERT INTO verdicts (trace_id, rubric, closed_ns, service, passed, verdict) "
                "VALUES (randomblob(16), 'qa', ?, 'shop', 1, '{}')", [(n + 1,) for n in range(count)],
            )  # fmt: skip
        return steps(store, name, **values)

    assert kept(400) == kept(20)


LONG = [f"{'s' * 150}{end}" for end in "ab"]
"""Two services that a series shows under one name."""


@pytest.mark.parametrize("services", [["shop"], LONG])
@pytest.mark.parametrize("name", ["recent_verdicts", "search_verdicts", "count_columns", "count_verdicts", "compared"])
async def test_of_a_service_that_most_verdicts_are_of_the_latest_are_read_and_not_all(store, name, services):
    values = {**filters(name), "limit": 5, "most": 5, "service": clean(services[0]), "since": 0, "until": 900}

    def kept(count: int) -> int:
        with closing(sqlite3.connect(store.path)) as connection, connection:
            connection.execute("DELETE FROM verdicts")
            connection.executemany(
                "INSERT INTO verdicts (trace_id, rubric, closed_ns, service, passed, verdict) "
                "VALUES (randomblob(16), 'qa', ?, ?, 1, '{}')",
                [(n + 1, services[n % len(services)]) for n in range(count)],
            )  # fmt: skip
        return steps(store, name, **values)

    assert kept(400) == kept(20)


async def test_without_its_index_a_search_finds_a_service_by_each_of_its_names(store):
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("DROP INDEX verdicts_by_service")
        connection.execute(
            "INSERT INTO verdicts (trace_id, rubric, closed_ns, service, passed, verdict) "
            "VALUES (?, 'qa', 1, ?, 1, '{}')", (A, "s" * 90),
        )  # fmt: skip
    assert len(store.verdicts(service="s" * 90)) == len(store.verdicts(service=label_of("s" * 90))) == 1
    assert store.verdicts(service="s" * 89) == []


async def test_a_purge_does_not_read_the_scores_that_are_kept(store):
    def kept(count: int) -> int:
        with closing(sqlite3.connect(store.path)) as connection, connection:
            connection.execute("DELETE FROM outbox")
            connection.executemany(
                "INSERT INTO outbox (id, trace_id, state, due_ns, queued_ns, at_ns, version, attempts, missed) "
                "VALUES (?, randomblob(16), ?, 0, 200, 0, 1, 0, 0)",
                [(str(n), ("sent", "stored")[n % 2]) for n in range(count)],
            )  # fmt: skip
        return steps(store, "purge_outbox", before=100, limit=500)

    assert kept(400) == kept(20)
    await store.purge(201)
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("SELECT count(*) FROM outbox").fetchone() == (0,)


async def test_an_index_that_cannot_be_made_keeps_no_store_from_opening(tmp_path):
    path = tmp_path / "s.sqlite"
    Store(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:  # one of an earlier version
        connection.execute("DROP INDEX outbox_over")
        connection.execute(
            "INSERT INTO outbox (id, trace_id, state, due_ns, queued_ns, at_ns, version, attempts, missed) "
            "VALUES ('it', randomblob(16), 'sent', 0, 200, 0, 1, 0, 0)"
        )
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'outbox'").fetchone()
    data = path.read_bytes()
    path.write_bytes(data[: (page - 1) * 8192] + b"\xff" * 8192 + data[page * 8192 :])
    store = Store(path)
    await store.append([Chunk(A, b"1")], 1)
    assert store.chunks(A) == [b"1"]
    store.close()


async def test_nobody_waits_for_a_search_of_verdicts_or_traces(store):
    await store.finish(finished(verdicts=[verdict(n=1)]))
    with store._at_one_time():  # who reads for judging
        found = asyncio.gather(asyncio.to_thread(store.verdicts, service="shop"), asyncio.to_thread(store.traces))
        (one,), (trace,) = await asyncio.wait_for(found, 10)
    assert (one["n"], trace["reason"]) == (1, "scored")
