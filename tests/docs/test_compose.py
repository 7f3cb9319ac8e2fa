"""The Compose file beside the documentation is the one that the documentation shows, and starts what it says."""

from __future__ import annotations

import yaml
from click.testing import CliRunner

from sidejudge.monitor.cli import main
from tests.docs.blocks import ROOT, blocks

FOLDER = ROOT / "docs" / "compose"
PAGE = ROOT / "docs" / "how-to" / "compose.md"


def test_the_files_are_those_of_the_page() -> None:
    shown = {block.title: block.text for block in blocks(PAGE) if block.title}
    assert shown == {name: (FOLDER / name).read_text() for name in ("compose.yaml", "sidejudge.yaml")}


def test_the_command_and_the_mounts_fit_the_image_and_the_configuration() -> None:
    (service,) = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"].values()
    image = (ROOT / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["python", "-P", "-m", "sidejudge"]' in image
    command, option, path = service["command"]
    shown = CliRunner().invoke(main, [command, "--help"])
    assert option in shown.output
    mounts = dict(each.split(":")[:2] for each in service["volumes"])
    assert path in mounts.values()
    configured = yaml.safe_load((FOLDER / "sidejudge.yaml").read_text())
    assert configured["store"]["path"].startswith(f"{mounts['state']}/")
    assert {each.rsplit(":", 1)[1] for each in service["ports"]} <= set(next(
        line for line in image.splitlines() if line.startswith("EXPOSE")
    ).split())  # fmt: skip


def test_its_configuration_is_valid() -> None:
    done = CliRunner().invoke(main, ["check", str(FOLDER / "sidejudge.yaml")])
    assert done.exception is None, done.output
