"""A sink and a notifier: both append lines to a file. ``again`` has the first call fail, as a network would."""

import json
from pathlib import Path

from sidejudge import DestinationUnreachableError, RefusedError


class Lines:
    """Appends verdicts; refuses those of another rubric than ``only``."""

    def __init__(self, path, *, only=None, again=False):
        self._path, self._only, self._again = Path(path), only, again

    def deliver(self, verdicts):
        if self._again:
            self._again = False
            raise DestinationUnreachableError("try it again", retry_after_s=0.1)
        refused = {at: "another rubric" for at, each in enumerate(verdicts) if self._only not in (None, each["rubric"])}
        with self._path.open("a") as file:
            for at, verdict in enumerate(verdicts):
                if at not in refused:
                    file.write(json.dumps(verdict) + "\n")
        return refused


class Pager:
    """Appends the titles of notices."""

    def __init__(self, path):
        self._path = Path(path)

    async def send(self, notice):
        if not notice["title"]:
            raise RefusedError("a notice without a title")
        with self._path.open("a") as file:
            file.write(json.dumps(notice) + "\n")


class Broken:
    """Cannot be made."""

    def __init__(self):
        raise OSError("no such host")
