"""What a command writes is there as a whole; what stood there stays where it cannot be written."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sidejudge.monitor.offline.whole_file import write_whole


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """No file takes more bytes than this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_stood_there_stays_where_the_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "scenarios.yaml"
    path.write_text("what a person wrote\n")
    with full_after(10), pytest.raises(OSError, match="too large") as raised:
        write_whole(path, "x" * 100)
    assert raised.value.filename == str(path)
    assert path.read_text() == "what a person wrote\n"
    with full_after(10), pytest.raises(OSError, match="too large"):
        write_whole(tmp_path / "new", "x" * 100)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_keeps_its_mode_and_a_link_its_target(tmp_path: Path) -> None:
    path, link = tmp_path / ("n" * 250), tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_whole(link, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777, link.is_symlink()) == ("new", 0o640, True)


def test_a_pipe_gets_the_text(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    write_whole(Path(f"/dev/fd/{writing}"), "text")
    os.close(writing)
    assert os.read(reading, 10) == b"text"
    os.close(reading)


def test_a_file_that_cannot_be_replaced_is_written_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> Path:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    path = tmp_path / "mounted"
    path.write_text("old")
    write_whole(path, "new")
    assert path.read_text() == "new"
    with pytest.raises(OSError, match="busy"):
        write_whole(tmp_path / "absent", "new")
    assert list(tmp_path.iterdir()) == [path]
