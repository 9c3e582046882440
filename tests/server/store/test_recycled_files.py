"""Files of payloads that are gone are written over, and no record ever sees another's content."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from revolute_server.store import recycled_files
from revolute_server.store.blobs import Blobs
from revolute_server.store.recycled_files import RecycledFiles

CONTENT = b"a payload " * 4000


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    found = Blobs(tmp_path / "store.db-blobs", sync=False)
    found.open()
    return found


def inode(blobs: Blobs, name: str) -> int:
    return os.stat(blobs._folder / name).st_ino


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("size", [len(CONTENT), len(CONTENT) - 9000, len(CONTENT) + 9000])
def test_a_file_is_written_over_under_another_name(blobs: Blobs, size: int) -> None:
    first = blobs.write((CONTENT,))
    place = inode(blobs, first)
    blobs.remove(first)
    with pytest.raises(FileNotFoundError):
        blobs.read(first)
    later = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    second = blobs.write((later[:100], later[100:]))
    assert second != first and inode(blobs, second) == place
    assert blobs.read(second) == later


def test_a_file_of_another_size_is_left(blobs: Blobs) -> None:
    first = blobs.write((CONTENT,))
    place = inode(blobs, first)
    blobs.remove(first)
    assert inode(blobs, blobs.write((CONTENT * 3,))) != place
    assert inode(blobs, blobs.write((CONTENT[:10_000],))) != place


def test_a_file_that_another_record_has_as_well_is_left(blobs: Blobs) -> None:
    first = blobs.write((CONTENT,))
    second = blobs.write_again(first, (CONTENT,))
    assert inode(blobs, first) == inode(blobs, second)
    blobs.remove(first)
    third = blobs.write((CONTENT[::-1],))
    assert inode(blobs, third) != inode(blobs, second)
    assert blobs.read(second) == CONTENT


def test_spares_are_bounded_and_go_with_the_store(
    blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recycled_files, "_MOST_BYTES", 2 * len(CONTENT))
    written = [blobs.write((CONTENT,)) for _ in range(5)]
    for name in written:
        blobs.remove(name)
    assert len(names(tmp_path / "store.db-spares")) == 2
    assert names(tmp_path / "store.db-blobs") == []
    blobs.close()
    assert not (tmp_path / "store.db-spares").exists()


def test_a_full_disk_gets_the_spares_back(
    blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs.remove(blobs.write((CONTENT,)))
    write: Callable[..., int] = os.writev

    def full_with_spares(descriptor: int, buffers: list[memoryview]) -> int:
        if names(tmp_path / "store.db-spares"):
            raise OSError(errno.ENOSPC, "no space left")
        return write(descriptor, buffers)

    monkeypatch.setattr(os, "writev", full_with_spares)
    assert blobs.read(blobs.write((CONTENT * 5,))) == CONTENT * 5
    assert names(tmp_path / "store.db-spares") == []
    assert len(names(tmp_path / "store.db-blobs")) == 1


def test_what_a_crash_left_is_removed_when_it_is_old(tmp_path: Path) -> None:
    folder = tmp_path / "spares"
    folder.mkdir()
    for name, age in (("young", 0.0), ("old", 7200.0)):
        (folder / name).write_bytes(CONTENT)
        os.utime(folder / name, (os.stat(folder / name).st_mtime - age,) * 2)
    RecycledFiles(folder).remove_old()
    assert names(folder) == ["young"]


def test_a_spare_that_somebody_removed_is_not_missed(blobs: Blobs, tmp_path: Path) -> None:
    blobs.remove(blobs.write((CONTENT,)))
    for name in names(tmp_path / "store.db-spares"):
        (tmp_path / "store.db-spares" / name).unlink()
    assert blobs.read(blobs.write((CONTENT,))) == CONTENT
