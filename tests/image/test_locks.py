"""The image's locks: complete, hashed, in the versions that are developed with, and naming no index."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.image.dockerfile import ROOT

IMAGES = ROOT / ".ci" / "image"
EVERY = ("grpc", "otel")
FULL = (*EVERY, "judge", "checks", "cel", "langfuse")
EXTRAS = {"base": EVERY, "judge": (*EVERY, "judge"), "full": FULL, "embeddings": (*FULL, "embeddings")}
LINUX = {
    **default_environment(), "sys_platform": "linux", "platform_system": "Linux", "python_version": "3.11",
    "python_full_version": "3.11.0", "implementation_name": "cpython", "platform_python_implementation": "CPython",
}  # fmt: skip


def locked(path: Path) -> dict[str, Requirement]:
    """What a lock has a Linux with Python 3.11 install, by name."""
    found = {}
    for block in re.split(r"\n(?=[A-Za-z])", path.read_text()):
        if block.startswith("#"):
            continue
        wanted = Requirement(block.partition(" \\")[0])
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), wanted
        if wanted.marker is None or wanted.marker.evaluate(LINUX):
            found[canonicalize_name(wanted.name)] = wanted
    return found


def image(variant: str) -> dict[str, Requirement]:
    torch = locked(IMAGES / "torch.lock") if variant == "embeddings" else {}
    return locked(IMAGES / f"{variant}.lock") | torch


def requested_for(variant: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for extra in EXTRAS[variant] for line in project["optional-dependencies"][extra]]
    return [Requirement(line) for line in (*project["dependencies"], *extras)]


@pytest.mark.parametrize("variant", EXTRAS)
def test_a_variant_holds_all_that_its_packages_ask_for(variant):
    """Nothing is resolved when an image is built: what a lock leaves out is missing."""
    held = image(variant)
    todo, seen = requested_for(variant), set()
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        for extra in wanted.extras or {""}:
            if (name, extra) in seen or (wanted.marker and not wanted.marker.evaluate({**LINUX, "extra": extra})):
                continue
            seen.add((name, extra))
            assert name in held, f"{variant} lacks {wanted}"
            (pin,) = held[name].specifier
            assert wanted.specifier.contains(pin.version, prereleases=True), f"{variant}: {held[name]} is not {wanted}"
            try:
                present = version(name)
            except PackageNotFoundError:
                continue  # its own needs are not known here
            if present.partition("+")[0] == pin.version:
                inner = [Requirement(line) for line in requires(name) or []]
                todo += [each for each in inner if not each.marker or each.marker.evaluate({**LINUX, "extra": extra})]


@pytest.mark.parametrize("variant", EXTRAS)
def test_a_variant_is_of_the_versions_that_are_developed_with(variant):
    developed = locked(ROOT / ".ci" / "requirements-dev.lock")
    differ = {name: (str(pin), str(developed[name])) for name, pin in image(variant).items()
              if name in developed and str(pin.specifier) != str(developed[name].specifier)}  # fmt: skip
    assert differ == {}


def test_each_variant_holds_what_the_one_before_it_does():
    held = [image(variant).keys() for variant in EXTRAS]
    assert all(before < after for before, after in pairwise(held))


def test_no_image_holds_an_installer_or_parts_for_graphics_cards():
    for variant in EXTRAS:
        assert not [
            name for name in image(variant) if name in {"pip", "uv", "triton"} or name.startswith(("nvidia", "cuda"))
        ]


def test_no_lock_names_an_index():
    for path in (*IMAGES.glob("*.lock"), *ROOT.glob(".ci/*.lock")):
        assert not re.search(r"index-url|find-links|https?://|file:", path.read_text()), path


def test_every_variant_that_the_chart_knows_has_a_lock():
    schema = (ROOT / "helm" / "sidejudge" / "values.yaml").read_text()
    variants = re.search(r'\{"enum": \["", ((?:"[a-z]+"(?:, )?)+)\]\}\n  variant', schema)
    assert variants is not None
    assert {"base", *re.findall(r"[a-z]+", variants[1])} == EXTRAS.keys()
