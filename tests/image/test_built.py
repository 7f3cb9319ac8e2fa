"""The image that buildah makes of the Dockerfile: what it says of itself, what it holds, and that it serves."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from packaging.utils import canonicalize_name

from sidejudge.monitor.demo.traffic import SampleTraffic
from tests.image import built
from tests.image.container import ANSWERS_S, Container, send
from tests.image.dockerfile import ROOT
from tests.image.dockerfile import image as read
from tests.image.test_locks import locked

pytestmark = [
    pytest.mark.skipif(built.missing() is not None, reason=str(built.missing())),
    pytest.mark.timeout(900),  # a base of Debian's packages and 100 MB of wheels come first
]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    buildah = built.Buildah(tmp_path_factory.mktemp("buildah"))
    try:
        yield built.build(buildah)
    finally:
        buildah.clean()


@pytest.fixture
def container(tmp_path, image):
    made = Container(tmp_path, image)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.wait()


def python(container, code, interpreter="python"):
    done = container.run(interpreter, "-P", "-c", code)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_an_engine_reads_what_the_dockerfile_says(image):
    stated = read()
    for name in ("user", "workdir", "entrypoint", "cmd"):
        assert getattr(image, name) == getattr(stated, name)
    assert image.exposed == sorted(stated.exposed)
    assert [part.replace("\n", "\\n") for part in image.healthcheck] == [
        part.replace("\n", "\\n") for part in stated.healthcheck
    ]
    prefix = "org.opencontainers.image."
    labels = {name.removeprefix(prefix): value for name, value in image.labels.items() if name.startswith(prefix)}
    assert (labels["version"], labels["revision"], labels["title"]) == ("1.2.3", "f" * 40, "sidejudge")
    assert labels["base.digest"] == "sha256:" + "0" * 64


def test_it_serves_on_its_own_read_only_root_without_root_rights(container):
    container.start()
    assert container.answers("/livez")
    assert container.answers("/readyz")
    traffic = SampleTraffic(1)
    assert [send(container.otlp, traffic)[1] for _ in range(3)] == [200] * 3
    assert container.settled()["seen"] == 3
    assert f'revision="{"f" * 12}' in httpx.get(container.api + "/metrics", trust_env=False, timeout=ANSWERS_S).text
    assert f"\nUid:\t{read().user.partition(':')[0]}\t" in Path(f"/proc/{container.process.pid}/status").read_text()
    assert container.end() == 0
    assert {path.name.split(".")[0] for path in container.state.rglob("*") if path.is_file()} == {"sidejudge"}


def test_nothing_is_left_to_install_with(container):
    code = "import importlib.util as u, json; print(json.dumps([n for n in NAMES if u.find_spec(n)]))"
    names = ["pip", "setuptools", "wheel", "ensurepip", "_distutils_hack", "uv"]
    for interpreter in ("python", "/usr/local/bin/python3"):
        assert json.loads(python(container, code.replace("NAMES", repr(names)), interpreter)) == [], interpreter
    code = "import json, shutil; print(json.dumps([n for n in NAMES if shutil.which(n)]))"
    programs = ["pip", "pip3", "pip3.11", "gcc", "curl", "wget", "git"]
    assert json.loads(python(container, code.replace("NAMES", repr(programs)))) == []


def test_its_bill_of_materials_is_its_lock(container):
    code = (
        "import json\nfrom importlib.metadata import distributions\n"
        "print(json.dumps({each.name: each.version for each in distributions()}))"
    )
    held = {canonicalize_name(name): version for name, version in json.loads(python(container, code)).items()}
    assert held.pop("sidejudge")
    wanted = {name: str(pin.specifier) for name, pin in locked(ROOT / ".ci" / "image" / "base.lock").items()}
    assert {name: f"=={version}" for name, version in held.items()} == wanted


def test_it_adds_little_to_its_base(image):
    assert 40 * 10**6 < image.size - image.size_of_base < 140 * 10**6
