"""Where models, sessions, trajectories and the answers to repeated requests are kept.

One small interface, `Store`, and three places behind it: an SQLite file, a Redis server, and this process's
memory. `open_store` chooses by the address of the flag `--store`.
"""

from .address import default_address, open_store
from .interface import (
    MODEL,
    REQUEST,
    SESSION,
    TOMBSTONE,
    TRAJECTORY,
    Conflict,
    Delete,
    Entry,
    Limits,
    Put,
    Record,
    Store,
    Touch,
    Write,
    bytes_of,
    delete_each,
    trim,
)
from .measured import MeasuredStore

__all__ = [
    "MODEL",
    "REQUEST",
    "SESSION",
    "TOMBSTONE",
    "TRAJECTORY",
    "Conflict",
    "Delete",
    "Entry",
    "Limits",
    "MeasuredStore",
    "Put",
    "Record",
    "Store",
    "Touch",
    "Write",
    "bytes_of",
    "default_address",
    "delete_each",
    "open_store",
    "trim",
]
