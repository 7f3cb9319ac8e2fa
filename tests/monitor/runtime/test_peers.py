"""What one monitor finds out about the others while some of their addresses are wrong."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import pytest

from sidejudge.integrations.otlp.wire.handover import HandoverKeys
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.fleet import PeersSection
from sidejudge.monitor.ingest.assembler import Assembler, AssemblyLimits
from sidejudge.monitor.runtime.peers import PeerExchange, drawn_by
from tests.fakes.receiver import Act, receiving


async def end(_: object) -> None:
    pass


async def test_an_address_that_leads_nowhere_hides_no_other_monitor_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path / "state.sqlite")
    with receiving() as other, receiving() as odd:
        other.act = lambda _: Act(body=b'{"name": "b", "run": "r"}')
        odd.act = lambda _: Act(body=b"\x1f\x8b", headers={"content-encoding": "gzip"})
        wrong = ["http://no-such-host.invalid:4318", f"http://{'a' * 64}.example:4318", odd.url]
        exchange = PeerExchange(
            PeersSection.model_validate({"addresses": [*wrong, other.url]}), Config(), store=store,
            assembler=Assembler(AssemblyLimits()), end=end, keys=HandoverKeys(), clock_ns=time.time_ns,
            wake=lambda: None,
        )  # fmt: skip
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                await exchange.greet()
        peer = exchange.joining.peers.named("b")
        assert peer is not None
        assert peer.url == other.url
        assert [each.getMessage() for each in caplog.records] == ["peers.addresses do not resolve"]
        await exchange.stop()
    store.close()


async def test_a_peer_that_draws_traces_by_another_key_is_reported_and_strangers_and_oneself_are_not(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path / "state.sqlite")
    drawing = {"randomness": "hashed", "randomness_key": "a key that only we have, of 32 letters"}
    config = Config.model_validate({"sampling": drawing})
    ours = config.sampling.hash_key
    with receiving() as other, receiving() as third:
        exchange = PeerExchange(
            PeersSection.model_validate({"addresses": [other.url, third.url]}), config, store=store,
            assembler=Assembler(AssemblyLimits()), end=end, keys=HandoverKeys(), clock_ns=time.time_ns,
            wake=lambda: None,
        )  # fmt: skip
        await exchange.greet()
        sent = json.loads(other.got[0].body)
        assert sent["drawn_by"] == drawn_by(ours)
        assert ours not in other.got[0].body

        async def greeted(url: str, by: str, name: str = "b") -> int:
            port = int(url.rpartition(":")[2])
            message = {"name": name, "run": "r", "port": port, "drawn_by": by}
            reply = await exchange._answer(message, "127.0.0.1")  # as the server calls it
            assert "drawn_by" not in reply, "anybody may greet"
            return len([*exchange.anomalies()])

        assert await greeted(other.url, drawn_by(ours)) == 0
        assert await greeted("http://127.0.0.1:1", drawn_by(b"another")) == 0, "a stranger"
        assert await greeted(third.url, drawn_by(b"another"), exchange.joining.name) == 0, "oneself"
        assert await greeted(third.url, drawn_by(b"another")) == 1
        (found,) = exchange.anomalies()
        assert found.cause.startswith("1 of 2 peers draw traces by another sampling.randomness")
        assert await greeted(third.url, drawn_by(ours)) == 0
        assert len(exchange._drawn_by) == 2
        exchange._led, exchange._recent = {}, {}  # ten minutes after the addresses led to others
        exchange._section = PeersSection.model_validate({"addresses": [other.url]})
        await exchange.greet()
        assert [*exchange._drawn_by] == [other.url]
        await exchange.stop()
    store.close()
