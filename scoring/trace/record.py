"""Records made by the thousand a second: frozen for the type checker and not at run time.

A frozen dataclass sets each field by a call of ``object.__setattr__``, which takes three times as long. mypy treats
``record`` as ``dataclass``, reads all of the code, and so ensures that nobody changes a record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool, slots: bool, kw_only: bool) -> Callable[[type], type]:
        """The decorator ``dataclass``, with the equality and hash of a frozen one."""
        return dataclass(slots=slots, kw_only=kw_only, unsafe_hash=frozen)
