"""Files of a configuration: each change of what it was read from is seen, the exchange of a mounted ConfigMap too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sidejudge.monitor.config import ConfigError, resolve

SCHEMA = {"type": "object"}


def write(folder: Path, word: str = "way") -> None:
    """A configuration with each kind of file that it may name."""
    (folder / "rubrics").mkdir(parents=True, exist_ok=True)
    (folder / "sidejudge.yaml").write_text(
        "rubric_files: ['*.rubric.yaml', 'rubrics/*.yaml']\nscenarios: scenarios.yaml\n"
    )
    (folder / "scenarios.yaml").write_text("refund: {tools_should_include: [lookup]}\n")
    (folder / "a.rubric.yaml").write_text("a: {metrics: [{id: s, check: {is-json: {schema: answer.json}}}]}\n")
    (folder / "rubrics" / "b.yaml").write_text(f"b: {{metrics: [{{id: w, check: {{contains: {word}}}}}]}}\n")
    (folder / "answer.json").write_text(json.dumps(SCHEMA))


@pytest.mark.parametrize("name", ["sidejudge.yaml", "scenarios.yaml", "a.rubric.yaml", "rubrics/b.yaml", "answer.json"])
def test_a_change_of_any_file_is_seen(tmp_path, name):
    write(tmp_path)
    files = resolve(tmp_path / "sidejudge.yaml", {}).files
    assert not files.changed
    (tmp_path / name).write_text((tmp_path / name).read_text() + " ")
    assert files.changed
    assert not files.stamped_anew().changed


def test_a_file_that_comes_or_goes_is_seen_and_one_that_nothing_names_is_not(tmp_path):
    write(tmp_path)
    files = resolve(tmp_path / "sidejudge.yaml", {}).files
    (tmp_path / "verdicts.jsonl").write_text("{}")
    (tmp_path / "rubrics" / ".hidden.yaml").write_text("{}")
    assert not files.changed
    more = tmp_path / "rubrics" / "c.yaml"
    more.write_text("c: {metrics: [{id: w, check: {contains: x}}]}\n")
    assert files.changed
    more.unlink()
    assert not files.changed
    (tmp_path / "rubrics" / "b.yaml").unlink()
    assert files.changed


def test_what_was_refused_names_its_files_so_that_a_missing_one_is_seen_when_it_comes(tmp_path):
    path = tmp_path / "sidejudge.yaml"
    path.write_text("rubric_files: [later.yaml]\nscenarios: later/scenarios.yaml\n")
    with pytest.raises(ConfigError) as refused:
        resolve(path, {})
    files = refused.value.files
    assert not files.changed
    (tmp_path / "later.yaml").write_text("{}")
    assert files.changed


class Mounted:
    """A ConfigMap as the kubelet mounts it: files are links into ``..data``, which is a link that is exchanged."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._number = folder, 0
        folder.mkdir()

    def put(self, files: dict[str, str]) -> None:
        """Write a whole new version beside the old one, and exchange the link in one step."""
        self._number += 1
        version = self.folder / f"..2026_{self._number}"
        version.mkdir()
        for name, text in files.items():
            (version / name).write_text(text)
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        (self.folder / "..data_tmp").symlink_to(version.name)
        (self.folder / "..data_tmp").replace(self.folder / "..data")


def test_a_mounted_configmap_changes_as_a_whole(tmp_path):
    mounted = Mounted(tmp_path / "config")
    rubric = "b: {metrics: [{id: w, check: {contains: way}}]}\n"
    mounted.put({"sidejudge.yaml": "rubric_files: ['*.rubric.yaml']\n", "b.rubric.yaml": rubric})
    found = resolve(mounted.folder / "sidejudge.yaml", {})
    assert list(found.config.declared) == ["b"]
    assert not found.files.changed
    mounted.put({"sidejudge.yaml": "rubric_files: ['*.rubric.yaml']\n", "b.rubric.yaml": rubric})
    assert found.files.changed
