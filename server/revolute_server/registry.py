"""A bounded table of things that clients name by id."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from typing import Generic, TypeVar

from revolute.errors import LimitError, NotFoundError

from .calls import current_client
from .memory import Reservation

Entry = TypeVar("Entry")


def new_id() -> str:
    """Make an id that cannot be guessed: 128 random bits in hexadecimal."""
    return secrets.token_hex(16)


class Registry(Generic[Entry]):
    """Entries by id, each with the bytes reserved for it.

    Args:
        noun: what an entry is.
        limit: entries of all clients.
        client_limit: entries of one client; None for no bound.
    """

    def __init__(self, noun: str, limit: int, client_limit: int | None = None) -> None:
        self.noun = noun
        self.limit = limit
        self.client_limit = client_limit
        self._owned: Counter[str] = Counter()
        self._entries: dict[str, tuple[Entry, Reservation]] = {}

    def check_room(self) -> None:
        """Refuse early when one more entry would not fit.

        Raises:
            LimitError: the table is full, or the client that calls has its share of it.
        """
        plural = {"trajectory": "trajectories"}.get(self.noun, self.noun + "s")
        if self.client_limit is not None and self._owned[current_client()] >= self.client_limit:
            raise LimitError(
                f"{plural}: expected at most {self.client_limit} of one client, got one more; "
                f"delete one that is no longer needed, or start the server with a larger "
                f"--max-client-{plural}",
                argument=plural,
            )
        if len(self._entries) >= self.limit:
            raise LimitError(
                f"{plural}: expected at most {self.limit} on this server, got one more; "
                f"delete one that is no longer needed, or start the server with a larger --max-{plural}",
                argument=plural,
            )

    def add(self, identifier: str, entry: Entry, reservation: Reservation) -> None:
        """Put an entry in; its bytes stay reserved until it is removed."""
        self.check_room()
        self._entries[identifier] = (entry, reservation.keep())
        self._owned[reservation.client] += 1

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
        self._owned[reservation.client] -= 1
        if not self._owned[reservation.client]:
            del self._owned[reservation.client]
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
