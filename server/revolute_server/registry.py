"""A bounded table of things that clients name by id."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Generic, TypeVar

from revolute.errors import LimitError, NotFoundError

from .memory import Reservation

Entry = TypeVar("Entry")


def new_id() -> str:
    """Make an id that cannot be guessed: 128 random bits in hexadecimal."""
    return secrets.token_hex(16)


class Registry(Generic[Entry]):
    """Entries by id, at most `limit` of them, each with the bytes reserved for it."""

    def __init__(self, noun: str, limit: int) -> None:
        self.noun = noun
        self.limit = limit
        self._entries: dict[str, tuple[Entry, Reservation]] = {}

    def check_room(self) -> None:
        """Refuse early when one more entry would not fit.

        Raises:
            LimitError: the table is full.
        """
        if len(self._entries) >= self.limit:
            plural = {"trajectory": "trajectories"}.get(self.noun, self.noun + "s")
            raise LimitError(
                f"{plural}: expected at most {self.limit} on this server, got one more; "
                f"delete one that is no longer needed, or start the server with a larger --max-{plural}",
                argument=plural,
            )

    def add(self, identifier: str, entry: Entry, reservation: Reservation) -> None:
        """Put an entry in; its bytes stay reserved until it is removed."""
        self.check_room()
        self._entries[identifier] = (entry, reservation.keep())

    def get(self, identifier: str) -> Entry:
        """Look an entry up.

        Raises:
            NotFoundError: no entry has this id.
        """
        found = self._entries.get(identifier)
        if found is None:
            raise self._missing(identifier)
        return found[0]

    def remove(self, identifier: str) -> Entry:
        """Take an entry out and give its bytes back.

        Raises:
            NotFoundError: no entry has this id.
        """
        if identifier not in self._entries:
            raise self._missing(identifier)
        entry, reservation = self._entries.pop(identifier)
        reservation.release()
        return entry

    def __contains__(self, identifier: str) -> bool:
        return identifier in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter([entry for entry, _ in self._entries.values()])

    def _missing(self, identifier: str) -> NotFoundError:
        return NotFoundError.missing(self.noun, identifier)
