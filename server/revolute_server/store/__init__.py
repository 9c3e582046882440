"""Stores for models, sessions, trajectories and the answers to repeated requests.

`open_store` chooses an implementation of the interface `Store` by the address in the flag `--store`.
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
from .memory import MemoryStore
from .split import SplitStore

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
    "MemoryStore",
    "Put",
    "Record",
    "SplitStore",
    "Store",
    "Touch",
    "Write",
    "bytes_of",
    "default_address",
    "delete_each",
    "open_store",
    "trim",
]
