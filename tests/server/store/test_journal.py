"""A journal that a crash has left, with wrong bytes in it: nothing that was committed vanishes."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from revolute_server.store import Store
from revolute_server.store.journal import Mended, mend

from .test_sqlite import SESSION, TRAJECTORY, fill, survey, use

HEADER, FRAME = 32, 24 + 4096
COMMITS = 40


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store as a crash leaves it: the journal has all of 40 transactions."""
    place = tmp_path_factory.mktemp("crashed")

    async def work(store: Store) -> None:
        await fill(store)
        shutil.copytree(place / "running", place / "left")

    use(place / "running" / "store.db", work)
    return place / "left" / "store.db"


@pytest.fixture
def path(crashed: Path, tmp_path: Path) -> Path:
    """Return a copy of it."""
    shutil.copytree(crashed.parent, tmp_path / "store")
    return tmp_path / "store" / crashed.name


def flip(path: Path, place: int) -> None:
    """Change one bit of the journal; a negative place counts from the end."""
    file = path.with_name(f"{path.name}-wal")
    content = bytearray(file.read_bytes())
    content[place] ^= 1 << place % 8
    file.write_bytes(content)


PLACES = [
    *(1, 9, 18, 25),
    *(HEADER + FRAME * 10 + place for place in (2, 5, 9, 17, 30, 4000)),
    *(place - FRAME for place in (2, 5, 17, 30, 4000)),
]
"""In the header, in a frame in the middle and in the last one: their fields, and both ends of the page."""


@pytest.mark.parametrize("place", PLACES)
def test_what_was_committed_is_there_or_is_data_loss(path: Path, place: int) -> None:
    flip(path, place)
    assert sum(use(path, survey).values()) >= COMMITS - 1


@pytest.mark.parametrize("seed", range(6))
def test_many_wrong_bytes(path: Path, seed: int) -> None:
    dice = random.Random(seed)
    size = path.with_name(f"{path.name}-wal").stat().st_size
    for _ in range(5):
        flip(path, dice.randrange(size))
    found = use(path, survey)
    assert len(found) == COMMITS and sum(found.values()) > COMMITS / 2


def test_without_the_index_the_last_frame_alone_is_in_doubt(path: Path) -> None:
    path.with_name(f"{path.name}-shm").unlink()
    whole = shutil.copytree(path.parent, path.parent.with_name("whole")) / path.name
    flip(path, HEADER + FRAME * 10 + 4000)
    assert sum(use(path, survey).values()) >= COMMITS - 1
    # it may as well be what the process was writing when it ended
    flip(whole, -1)
    assert mend(whole) is None


def test_a_journal_that_is_whole_is_left_alone(path: Path) -> None:
    before = path.with_name(f"{path.name}-wal").read_bytes()
    assert mend(path) is None
    assert path.with_name(f"{path.name}-wal").read_bytes() == before
    assert all(use(path, survey).values())
    assert mend(path) is None


def test_what_was_not_committed_does_not_come_back(tmp_path: Path) -> None:
    path, left = tmp_path / "running" / "a.db", tmp_path / "left" / "a.db"
    path.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE numbers (number INTEGER)")
    connection.execute("PRAGMA cache_size = 5")
    for number in range(20):
        connection.execute("INSERT INTO numbers VALUES (?)", (number,))
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in range(20, 50_000)])
    shutil.copytree(path.parent, left.parent)
    connection.close()
    assert left.with_name("a.db-wal").stat().st_size > HEADER + 50 * FRAME
    assert mend(left) is None
    flip(left, HEADER + 12 * FRAME + 4000)
    assert isinstance(mend(left), Mended)
    with sqlite3.connect(left) as found:
        assert [row[0] for row in found.execute("SELECT number FROM numbers")] == list(range(20))


async def count(store: Store) -> int:
    return len(await store.scan(TRAJECTORY)) + len(await store.scan(SESSION))


def test_after_a_power_failure_the_journal_is_left_to_sqlite(path: Path) -> None:
    boot = path.with_name(f"{path.name}-boot")
    boot.write_text("another run of the machine", "ascii")
    # a frame that was never synced, with later ones that were
    file = path.with_name(f"{path.name}-wal")
    content = bytearray(file.read_bytes())
    middle = HEADER + FRAME * ((len(content) - HEADER) // FRAME // 2)
    content[middle + 24 : middle + FRAME] = bytes(4096)
    file.write_bytes(content)
    copy = shutil.copytree(path.parent, path.parent.with_name("plain")) / path.name
    with sqlite3.connect(copy) as plain:
        expected = plain.execute("SELECT count(*) FROM records").fetchone()[0]
    assert 0 < use(path, count) == expected < COMMITS
    assert boot.read_text("ascii") == Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
