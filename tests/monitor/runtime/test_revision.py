"""The revision is that of the build, or honestly unknown."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from sidejudge.monitor.runtime import metric_labels as revisions
from sidejudge.monitor.runtime.metric_labels import UNKNOWN, VARIABLE, own_revision, revision

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(autouse=True)
def _nothing_recorded(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(revisions, "_installed", lambda: "")


def git(folder, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@needs_git
def test_a_checkout_is_asked_and_says_whether_it_has_changes(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    head = git(tmp_path, "rev-parse", "HEAD")[:12]
    assert revision(tmp_path) == head
    (tmp_path / "file").write_text("2")
    assert revision(tmp_path) == f"{head}-dirty"


@needs_git
def test_a_repository_further_up_is_somebody_elses(tmp_path):
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-qm", "theirs", "--allow-empty")
    inside = tmp_path / "lib"
    inside.mkdir()
    assert revision(inside) == UNKNOWN


def test_an_image_says_it_by_its_environment(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0123456789abcdef")
    assert revision(tmp_path) == "0123456789ab"


def test_what_nothing_recorded_is_unknown(tmp_path):
    assert revision(tmp_path) == UNKNOWN
    (tmp_path / ".git").write_text("broken")
    assert revision(tmp_path) == UNKNOWN


def test_a_process_asks_for_its_own_once(monkeypatch):
    asked = []
    monkeypatch.setattr(revisions, "_checked_out", asked.append)
    own_revision.cache_clear()
    assert [own_revision(), own_revision()] == [UNKNOWN, UNKNOWN]
    assert len(asked) == 1
    own_revision.cache_clear()
