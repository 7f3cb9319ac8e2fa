"""Records that are made by the thousand a second: frozen for the type checker, and not watched when the program runs.

A frozen dataclass sets each of its fields by a call of ``object.__setattr__``, and so takes three times as long to
make. That nobody changes a record is held by mypy, which takes ``record`` for ``dataclass`` and reads all of the code.
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
        """The decorator ``dataclass``; equality and hash are those of a frozen one."""
        return dataclass(slots=slots, kw_only=kw_only, unsafe_hash=frozen)
