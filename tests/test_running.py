"""Each process has ports of its own for the monitors that it starts, ends and starts again."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

from tests.running import free_port


def one_port(line: Connection) -> None:
    line.send(free_port())
    line.recv()


def test_processes_that_live_at_once_take_ports_of_different_blocks() -> None:
    fork, lines = multiprocessing.get_context("fork"), []
    own = free_port()
    for _ in range(8):
        line, far = fork.Pipe()
        fork.Process(target=one_port, args=(far,), daemon=True).start()
        lines.append(line)
    blocks = {port // 200 for port in (own, *(line.recv() for line in lines))}
    for line in lines:
        line.send(None)
    assert len(blocks) == 9
