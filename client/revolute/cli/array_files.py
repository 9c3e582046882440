"""Array files that commands read and write: .npy for one array, .npz for several by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..contract.codec.npz import DAMAGED
from ..contract.errors import ArgumentError


def load_array(flag: str, path: Path) -> np.ndarray:
    """Return the array of an .npy file. Pickles are never loaded.

    Args:
        flag: the flag that names the file, for the error text.
        path: the file.

    Raises:
        ArgumentError: the file cannot be read, or is an .npz file.
    """
    content = _load(flag, path, ".npy")
    if isinstance(content, np.ndarray):
        return content
    content.close()
    raise ArgumentError.expected(
        flag, "an .npy file", f"the .npz file '{path}'", advice="give it as --inputs"
    )


def load_members(flag: str, path: Path, known: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name. Pickles are never loaded.

    Args:
        flag: the flag that names the file, for the error text.
        path: the file.
        known: allowed names of members.

    Raises:
        ArgumentError: the file cannot be read, is not an .npz file, or has a member with another name.
    """
    content = _load(flag, path, ".npz")
    if isinstance(content, np.ndarray):
        raise ArgumentError.expected(flag, "an .npz file", f"the .npy file '{path}'")
    with content:
        for name in content.files:
            if name not in known:
                raise ArgumentError.expected(flag, f"members among {', '.join(known)}", repr(name))
        try:
            return {name: content[name] for name in content.files}
        except DAMAGED as error:
            raise _unreadable(flag, path, ".npz", str(error)) from error


def check_writable(flag: str, path: Path | None) -> None:
    """Check that a file can be written, before a long computation. The file is not changed.

    Args:
        flag: the flag that names the file, for the error text.
        path: the file, or None.

    Raises:
        ArgumentError: the file cannot be opened for writing.
    """
    if path is None:
        return
    new = not path.exists()
    try:
        path.open("ab").close()
        if new:
            path.unlink()
    except OSError as error:
        raise _not_writable(flag, path, error) from error


def write_members(flag: str, path: Path | None, arrays: Mapping[str, Any]) -> None:
    """Write arrays by name to an .npz file and print its path. Does nothing without a path.

    Args:
        flag: the flag that names the file, for the error text.
        path: the file, or None.
        arrays: the arrays.

    Raises:
        ArgumentError: the file cannot be written.
    """
    if path is None:
        return
    try:
        with path.open("wb") as file:
            np.savez(file, **arrays)
    except OSError as error:
        raise _not_writable(flag, path, error) from error
    print(f"written: {path}")


def _load(flag: str, path: Path, suffix: str) -> Any:
    """Load a file with NumPy."""
    try:
        return np.load(path, allow_pickle=False)
    except OSError as error:
        raise _unreadable(flag, path, suffix, error.strerror or str(error)) from error
    except DAMAGED as error:
        # NumPy takes any unknown file for a pickle
        raise _unreadable(flag, path, suffix, "another kind of file, or one with pickled objects") from error


def _unreadable(flag: str, path: Path, suffix: str, why: str) -> ArgumentError:
    return ArgumentError.expected(flag, f"a readable {suffix} file", f"'{path}' ({why})")


def _not_writable(flag: str, path: Path, error: OSError) -> ArgumentError:
    return ArgumentError.expected(
        flag, "a file that can be written", f"'{path}' ({error.strerror or type(error).__name__})"
    )
