"""Options of the form KEY=GLOB: a condition on traces, as a route's match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sidejudge.monitor.config.match import MatchSection


def match_of(where: Iterable[str], option: str) -> MatchSection:
    """The condition that all of them make; ``CommandError`` names the option and the key of a wrong one."""
    from pydantic import ValidationError

    from sidejudge.monitor.config.match import MatchSection

    given: dict[str, object] = {}
    for text in where:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CommandError(f"{option}: {text!r} is not KEY=GLOB", f"for example {option} environment=production")
        given[key] = value
    try:
        return MatchSection.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise CommandError(f"{option}: {place}: {first['msg']}", "the keys are those of a route's match") from None
