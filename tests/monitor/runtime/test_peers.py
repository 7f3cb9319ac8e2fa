"""What one monitor finds out about the others while some of their addresses are wrong."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from sidejudge.integrations.otlp.wire.handover import HandoverKeys
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config.fleet import PeersSection
from sidejudge.monitor.ingest.assembler import Assembler, AssemblyLimits
from sidejudge.monitor.runtime.peers import PeerExchange
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
            PeersSection.model_validate({"addresses": [*wrong, other.url]}), store=store,
            assembler=Assembler(AssemblyLimits()), end=end, hash_key=b"", keys=HandoverKeys(), longest_ns=10**12,
            most=10, clock_ns=time.time_ns, wake=lambda: None,
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
