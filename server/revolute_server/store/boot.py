"""Whether the machine has been running all the time since a store was opened last.

What a process has written is there as long as the machine runs, also when the process was killed. When the
machine itself stops, what was not synced may be there in part, later writes without earlier ones.
"""

from __future__ import annotations

from pathlib import Path

from .private_files import make_private

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def ran_all_the_time(path: Path) -> bool:
    """Tell whether the machine that opened a store last was this one, and has not been started anew since.

    Args:
        path: the store's file.

    Returns:
        False also where that is not known.
    """
    noted = _note(path)
    return noted.exists() and bool(boot := _boot()) and noted.read_text("ascii", errors="replace") == boot


def note(path: Path) -> None:
    """Note that this machine opens a store, in a file beside it."""
    if (boot := _boot()) and not ran_all_the_time(path):
        make_private(_note(path))
        _note(path).write_text(boot, "ascii")


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}-boot")


def _boot() -> str:
    """Return what names this run of the machine; nothing where the system has no such name."""
    try:
        return _BOOT.read_text("ascii")
    except OSError:
        return ""
