"""What the Dockerfile says of the image that comes out, as a container engine would read it."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Image:
    """The last stage: ``environ``, ``user``, ``workdir``, ``entrypoint``, ``cmd``, ``healthcheck``."""

    def __init__(self, text: str) -> None:
        joined = re.sub(r"\\\n\s*", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
        self.stages = re.split(r"^FROM ", joined, flags=re.MULTILINE)[1:]
        last = self.stages[-1].splitlines()[1:]
        stated: dict[str, str] = {}
        self.environ: dict[str, str] = {}
        for line in filter(None, last):
            verb, _, rest = line.partition(" ")
            if verb == "ENV":
                self.environ |= dict(pair.split("=", 1) for pair in rest.split())
            else:
                stated[verb] = rest
        self.user, self.workdir = stated["USER"], stated["WORKDIR"]
        self.entrypoint: list[str] = json.loads(stated["ENTRYPOINT"])
        self.cmd: list[str] = json.loads(stated["CMD"])
        self.healthcheck: list[str] = json.loads(stated["HEALTHCHECK"].partition("CMD ")[2])
        self.exposed = stated["EXPOSE"].split()


def image() -> Image:
    """The repository's image."""
    return Image((ROOT / "Dockerfile").read_text(encoding="utf-8"))
