"""Every file of the corpus does what its name says; bad ones give exactly the problems that their head expects."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidejudge.monitor.config import ConfigError, load

CORPUS = Path(__file__).parent
ENVIRON = {"FOLDER": "/tmp/x", "RATE": "0.25", "WORD": "text"}
GOOD = sorted(CORPUS.glob("*.good.yaml"))
BAD = sorted(CORPUS.glob("*.bad.yaml"))


def test_the_corpus_is_there() -> None:
    assert len(GOOD) >= 5
    assert len(BAD) >= 10


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_configuration_loads(path: Path) -> None:
    load(path, ENVIRON)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_configuration_is_refused_with_every_problem_it_has(path: Path) -> None:
    head = [line for line in path.read_text().splitlines() if line.startswith("# expect: ")]
    expected = [line.removeprefix("# expect: ").replace("FILE", str(path)) for line in head]

    with pytest.raises(ConfigError) as refusal:
        load(path, ENVIRON)

    stated = [str(problem) for problem in refusal.value.problems]
    for fragment in expected:
        assert any(fragment in text for text in stated), f"{fragment!r} is not in {stated}"
    assert len(stated) == len(expected), stated
