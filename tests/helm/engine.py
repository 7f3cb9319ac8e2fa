"""The real Helm engine, in a process of its own, and what it renders.

The engine is Helm as a shared library (``helm-sdkpy``). It has no verb ``template``; ``install`` against a stand-in of
a cluster renders all the same, with values schema, ``kubeVersion``, capabilities, ``fail``, notes and hooks. It keeps
its releases where the variable ``HELM_DRIVER`` says, and reads it when the library is loaded: hence the process.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
LATEST = "v1.33.0"
FIRST_ADMISSION = "v1.36.0"
FIRST_NATIVE = "v1.29.0"
BEFORE_NATIVE = "v1.28.0"


class Refused(Exception):  # noqa: N818  # Helm refuses
    """Helm would not render, and says why."""


def _loaded(text: str) -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [each for each in yaml.load_all(text, Loader=loader) if each]


@dataclass
class Rendered:
    """What a chart comes to: the objects, those of hooks, and the notes."""

    manifest: str
    hooks: list[str] = field(default_factory=list)
    notes: str = ""

    @cached_property
    def objects(self) -> list[dict[str, Any]]:
        return _loaded(self.manifest)

    @cached_property
    def everything(self) -> list[dict[str, Any]]:
        return self.objects + [each for hook in self.hooks for each in _loaded(hook)]

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.everything if each["kind"] == kind]

    def one(self, kind: str, name: str | None = None) -> dict[str, Any]:
        found = [each for each in self.all(kind) if name is None or each["metadata"]["name"] == name]
        assert len(found) == 1, (
            f"{len(found)} of {kind} {name or ''}: {[(e['kind'], e['metadata']['name']) for e in self.everything]}"
        )
        return found[0]

    @property
    def configuration(self) -> dict[str, str]:
        """The files of the ConfigMap that the gateway's configuration lies in, by name."""
        (found,) = (each["data"] for each in self.all("ConfigMap") if "sidejudge.yaml" in each["data"])
        return found


class Engine:
    """Asks the process. Same question, same answer: it is asked once."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "HELM_DRIVER": "memory", "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        self._known: dict[str, dict[str, Any]] = {}

    def ask(self, **question: Any) -> dict[str, Any]:
        line = json.dumps(question, sort_keys=True, default=str)
        if line not in self._known:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            self._known[line] = json.loads(self._process.stdout.readline() or '{"refused": "the engine has ended"}')
        answer = self._known[line]
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer

    def render(
        self,
        chart: Path | str,
        values: dict[str, Any] | None = None,
        *,
        kube: str = LATEST,
        crds: bool = True,
        release: str = "rel",
        namespace: str = "shop",
        **more: Any,
    ) -> Rendered:
        answer = self.ask(
            do="render", chart=str(chart), values=values or {}, kube=kube, crds=crds, release=release,
            namespace=namespace, **more,
        )  # fmt: skip
        return Rendered(**answer)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)
        if self._process.stdout is not None:
            self._process.stdout.close()


class _Worker:
    def __init__(self) -> None:
        import helm_sdkpy  # noqa: PLC0415  # only the process has it

        self._helm = helm_sdkpy
        self._folder = Path(tempfile.mkdtemp(prefix="helm-"))
        self._kubeconfigs: dict[tuple[str, bool], str] = {}

    def _configuration(self, kube: str, namespace: str, *, crds: bool) -> Any:
        from tests.helm.cluster import Cluster  # noqa: PLC0415  # only this test needs it

        if (kube, crds) not in self._kubeconfigs:
            file = self._folder / f"{kube}-{crds}.json"
            file.write_text(Cluster(kube, custom=crds).kubeconfig)
            self._kubeconfigs[kube, crds] = str(file)
        return self._helm.Configuration(namespace=namespace, kubeconfig=self._kubeconfigs[kube, crds], plain_http=True)

    async def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        do = question.pop("do")
        crds = question.pop("crds", True)
        config = self._configuration(question.pop("kube", LATEST), question.pop("namespace", "shop"), crds=crds)
        if do == "lint":
            return {"lint": await self._helm.Lint(config).run(question["chart"])}
        if do == "package":
            return {"archive": await self._helm.Package(config).run(question["chart"], question["folder"])}
        if do == "push":
            await self._helm.Push(config).run(question["archive"], question["remote"], plain_http=True)
            return {}
        release = await self._helm.Install(config).run(
            question["release"],
            question["chart"],
            values=question["values"],
            wait=False,
            version=question.get("version"),
        )
        hooks = [hook["manifest"] for hook in release.get("hooks") or []]
        return {
            "manifest": release.get("manifest", ""),
            "hooks": hooks,
            "notes": (release.get("info") or {}).get("notes", ""),
        }


def main() -> None:
    """Answer one question a line until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the library prints is no answer
    worker = _Worker()
    for line in sys.stdin:
        try:
            answer = asyncio.run(worker.answer(json.loads(line)))
        except Exception as error:  # noqa: BLE001  # Helm's refusals are what is asked for
            answer = {"refused": str(error).strip()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
