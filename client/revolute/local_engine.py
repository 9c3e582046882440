"""The engine in this process, if it is installed."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from .contract.errors import UnavailableError
from .contract.transport import ENTRY_POINTS, IN_PROCESS


def local_engine() -> Any:
    """Return the class of the transport to the engine in this process.

    Raises:
        UnavailableError: no engine is installed.
    """
    found = entry_points(group=ENTRY_POINTS, name=IN_PROCESS)
    if not found:
        raise _no_engine()
    try:
        return next(iter(found)).load()
    except ImportError as error:
        raise _no_engine(error) from error


def _no_engine(error: ImportError | None = None) -> UnavailableError:
    cause = "" if error is None else f" ({error})"
    return UnavailableError(
        f"address: expected the engine in this process, got none{cause}; "
        'install it with `pip install "revolute[server]"` (from a clone: `pip install ./client .`), '
        'or connect to a server: revolute.connect("grpc://host:50051")',
        argument="address",
    )
