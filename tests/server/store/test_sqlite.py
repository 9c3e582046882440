"""What only a file can do: outlive the process, be damaged, be full, be shared, be of another release."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import random
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from revolute.contract.errors import (
    ArgumentError,
    DataLossError,
    LimitError,
    RevoluteError,
    UnavailableError,
)
from revolute_server.store import REQUEST, SESSION, TRAJECTORY, Delete, Limits, Put, Store, open_store
from revolute_server.store.blobs import Blobs

Result = TypeVar("Result")
SMALL, LARGE = b"small payload in the database" * 9, bytes(range(256)) * 400


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def use(path: Path, work: Callable[[Store], Awaitable[Result]], durability: str = "process") -> Result:
    """Open the store, do some work, and close it."""

    async def main() -> Result:
        store = open_store(f"sqlite:///{path}", durability, Limits())
        await store.open()
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(main())


async def fill(store: Store) -> None:
    for number in range(20):
        await store.commit(Put(TRAJECTORY, f"t{number}", (LARGE, b"%d" % number)))
        await store.commit(Put(SESSION, f"s{number}", (SMALL, b"%d" % number)))


async def survey(store: Store) -> dict[str, bool]:
    """Read everything; tell which records are as they were, those that are damaged as False."""
    found = {}
    for kind, content in ((TRAJECTORY, LARGE), (SESSION, SMALL)):
        for number in range(20):
            key = f"{kind[0]}{number}"
            try:
                record = await store.get(kind, key)
            except DataLossError as error:
                assert error.argument == f"{kind}_id" and key in str(error)
                found[key] = False
            else:
                assert record is not None and record.payload[0] == content + b"%d" % number
                found[key] = True
    return found


def damage(file: Path, content: bytes) -> None:
    """Change one bit where some bytes lie in a file."""
    data = bytearray(file.read_bytes())
    place = data.find(content)
    assert place >= 0
    data[place] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_records_are_there_the_next_time(path: Path, durability: str) -> None:
    use(path, fill, durability)
    assert all(use(path, survey, durability).values())


def test_a_damaged_file_is_one_lost_record(path: Path) -> None:
    use(path, fill)
    files = list(path.with_name("store.db-blobs").iterdir())
    assert len(files) == 20
    damage(files[7], LARGE[1000:1300])
    found = use(path, survey)
    assert sum(found.values()) == 39

    async def delete(store: Store) -> None:
        await store.commit(Delete(TRAJECTORY, next(key for key, whole in found.items() if not whole)))

    use(path, delete)
    assert len(list(path.with_name("store.db-blobs").iterdir())) == 19


def test_a_file_that_is_written_over_while_it_is_read_is_no_damage(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Blobs.read

    async def work(store: Store) -> None:
        await store.commit(Put(TRAJECTORY, "t", (LARGE,)))
        later = LARGE[::-1]

        def too_late(self: Blobs, name: str) -> bytes:
            """Read a file as one that was opened before its record changed, and is another's by now."""
            monkeypatch.setattr(Blobs, "read", read)
            asyncio.run_coroutine_threadsafe(store.commit(Put(TRAJECTORY, "t", (later,))), loop).result(30.0)
            return LARGE[:1000] + later[1000:]

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(Blobs, "read", too_late)
        record = await store.get(TRAJECTORY, "t")
        assert record is not None and record.payload[0] == later and record.version == 2

    use(path, work)


def test_a_missing_file_is_one_lost_record(path: Path) -> None:
    use(path, fill)
    next(path.with_name("store.db-blobs").iterdir()).unlink()
    assert sum(use(path, survey).values()) == 39


def test_a_damaged_row_is_one_lost_record(path: Path) -> None:
    use(path, fill)
    damage(path, SMALL + b"7")
    found = use(path, survey)
    assert [key for key, whole in found.items() if not whole] == ["s7"]


def test_a_row_in_another_place_is_a_lost_record(path: Path) -> None:
    use(path, fill)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE records SET key = 'x' WHERE key = 's1'")
        connection.execute("UPDATE records SET key = 's1' WHERE key = 's2'")
        connection.execute("UPDATE records SET key = 's2' WHERE key = 'x'")
    found = use(path, survey)
    assert [key for key, whole in found.items() if not whole] == ["s1", "s2"]


PAGE = 4096


def damage_page(path: Path, number: int) -> None:
    """Overwrite a page, counted from 1."""
    data = path.read_bytes()
    start = (number - 1) * PAGE
    path.write_bytes(data[:start] + b"\xa5" * PAGE + data[start + PAGE :])


RECOVERY = r"sqlite3 \S+ '\.recover --ignore-freelist' \| sqlite3 recovered\.db"


def test_a_file_that_sqlite_calls_malformed_is_refused_and_left_alone(path: Path) -> None:
    use(path, fill)
    original = path.read_bytes()
    pages = len(original) // PAGE
    assert pages >= 12
    for number in range(1, pages + 1):
        damage_page(path, number)
        before = path.read_bytes()
        with pytest.raises(
            ArgumentError, match=rf"(malformed|not a database).* at .*store\.db; recover it \({RECOVERY}\)"
        ) as caught:
            use(path, survey)
        assert "\n" not in str(caught.value)
        assert path.read_bytes() == before
        path.write_bytes(original)
    assert all(use(path, survey).values())


@pytest.mark.parametrize("seed", range(2))
def test_one_wrong_bit_costs_one_record_or_is_refused(path: Path, seed: int) -> None:
    """Wherever the bit lies, no record vanishes and none comes back with another content."""
    use(path, fill)
    original = path.read_bytes()
    dice = random.Random(seed)
    refused = lost = 0
    for _ in range(80):
        content = bytearray(original)
        place = dice.randrange(len(content))
        content[place] ^= 1 << dice.randrange(8)
        path.write_bytes(content)
        try:
            found = use(path, survey)
        except ArgumentError as error:
            assert str(error).startswith("store: expected")
            refused += 1
        else:
            assert sum(found.values()) >= 39
            lost += sum(found.values()) == 39
    assert refused and lost


def test_a_page_that_is_damaged_under_a_running_server_is_data_loss(path: Path) -> None:
    async def more_than_is_cached(store: Store) -> None:
        await store.commit(*(Put(REQUEST, f"r{number}", (bytes(12_000),)) for number in range(600)))

    async def work(store: Store) -> None:
        with path.open("r+b") as file:
            file.seek(PAGE)
            file.write(b"\xa5" * (path.stat().st_size - PAGE))
        with pytest.raises(DataLossError, match=rf"stop the server and recover the file: {RECOVERY}"):
            for number in range(600):
                await store.get(REQUEST, f"r{number}")
        with pytest.raises(DataLossError, match=RECOVERY):
            await store.commit(*(Delete(REQUEST, f"r{number}") for number in range(600)))

    use(path, more_than_is_cached)
    use(path, work)


def test_a_wrong_byte_in_the_journal_of_a_crash_alters_no_record(path: Path) -> None:
    """SQLite forgets what was committed after it; what it knows is whole, and the store goes on."""
    left = path.with_name("left")

    async def work(store: Store) -> None:
        await fill(store)
        shutil.copytree(path.parent / "running", left)

    use(path.parent / "running" / path.name, work)
    journal = (left / "store.db-wal").read_bytes()
    dice = random.Random(0)
    for _ in range(20):
        content = bytearray(journal)
        content[dice.randrange(len(content))] ^= 1
        (left / "store.db-wal").write_bytes(content)
        use(left / path.name, check_what_is_there)
        for suffix in ("", "-wal", "-shm"):
            (left / f"store.db{suffix}").unlink(missing_ok=True)


async def check_what_is_there(store: Store) -> None:
    kept = {TRAJECTORY: LARGE, SESSION: SMALL}
    for kind, content in kept.items():
        entries = await store.scan(kind)
        # records were committed in order, and the newest are forgotten first
        assert [entry.key for entry in entries] == [f"{kind[0]}{n}" for n in range(len(entries))]
        for number, entry in enumerate(entries):
            record = await store.get(kind, entry.key)
            assert record is not None and record.payload[0] == content + b"%d" % number
    await store.commit(Put(SESSION, "new", (SMALL,)))


@pytest.mark.parametrize("name", ["store.db", "store.db-wal"])
def test_nothing_is_acknowledged_into_a_file_that_is_gone(path: Path, name: str) -> None:
    async def work(store: Store) -> None:
        await fill(store)
        file = path.with_name(name)
        file.rename(path.with_name("elsewhere"))
        for _ in range(2):
            with pytest.raises(
                UnavailableError, match="the file that the server opened, got another or none"
            ):
                await store.commit(Put(TRAJECTORY, "new", (LARGE,)))
            file.write_bytes(path.with_name("elsewhere").read_bytes())
        path.with_name("elsewhere").rename(file)
        await store.commit(Put(TRAJECTORY, "new", (LARGE,)))

    use(path, work)
    assert all(use(path, survey).values())
    assert len(list(path.with_name("store.db-blobs").iterdir())) == 21


def test_a_folder_that_was_removed_is_made_again(path: Path) -> None:
    async def work(store: Store) -> None:
        await fill(store)
        shutil.rmtree(path.with_name("store.db-blobs"))
        await store.commit(Put(TRAJECTORY, "new", (LARGE,)))
        assert (await store.get(TRAJECTORY, "new")) is not None
        assert sum((await survey(store)).values()) == 20

    use(path, work)


@pytest.fixture
def small_files() -> Iterator[Callable[[int], None]]:
    """Return a function that limits the size of files that this process writes, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_an_error_and_the_store_goes_on(
    path: Path, small_files: Callable[[int], None]
) -> None:
    async def work(store: Store) -> None:
        await fill(store)
        small_files(64 * 1024)
        with pytest.raises(LimitError, match="store: expected room"):
            await store.commit(Put(TRAJECTORY, "new", (LARGE,)))
        outcomes = await asyncio.gather(
            *(store.commit(Put(SESSION, f"new{number}", (SMALL * 50,))) for number in range(60)),
            return_exceptions=True,
        )
        refused = [outcome for outcome in outcomes if outcome is not None]
        assert refused and all(isinstance(outcome, RevoluteError) for outcome in refused)
        assert all((await survey(store)).values())
        for number, outcome in enumerate(outcomes):
            assert (await store.look(SESSION, f"new{number}") is None) == (outcome is not None)
        small_files(resource.RLIM_INFINITY)
        await store.commit(Put(TRAJECTORY, "new", (LARGE,)))
        assert len(list(path.with_name("store.db-blobs").iterdir())) == 21

    use(path, work)
    assert all(use(path, survey).values())


def test_deleting_makes_room_again(path: Path) -> None:
    async def work(store: Store) -> None:
        await fill(store)
        for number in range(20):
            await store.commit(Delete(TRAJECTORY, f"t{number}"))
        assert store.count(TRAJECTORY) == 0

    use(path, work)
    assert list(path.with_name("store.db-blobs").iterdir()) == []


def test_two_processes_may_share_a_file(path: Path) -> None:
    """Two stores stand for two processes; SQLite's locks do not tell them apart."""

    async def work(one: Store) -> None:
        other = open_store(f"sqlite:///{path}", "process", Limits({SESSION: 50}))
        await other.open()
        await asyncio.gather(
            *(s.commit(Put(SESSION, f"{i}", (SMALL,))) for i, s in enumerate([one, other] * 25))
        )
        assert len(await one.scan(SESSION)) == len(await other.scan(SESSION)) == 50
        with pytest.raises(LimitError):
            await other.commit(Put(SESSION, "new", (SMALL,)))
        await one.commit(Delete(SESSION, "7"))
        assert await other.look(SESSION, "7") is None
        await other.close()

    use(path, work)


def test_files_that_nothing_names_are_removed_when_they_are_old(path: Path) -> None:
    use(path, fill)
    folder = path.with_name("store.db-blobs")
    for name, age in (("young", 0), ("old", 7200)):
        (folder / name).write_bytes(b"left by a crash")
        os.utime(folder / name, (os.stat(folder / name).st_mtime - age,) * 2)
    use(path, survey)
    assert (folder / "young").exists() and not (folder / "old").exists()
    assert len(list(folder.iterdir())) == 21


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """Return a folder of a user without special rights, and be that user meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        is_root = os.geteuid() == 0
        if is_root:
            os.chown(folder, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, 0)
        try:
            yield Path(folder)
        finally:
            if is_root:
                os.setresuid(0, 0, 0)
            for part in (folder, f"{folder}/store", f"{folder}/store/store.db-blobs"):
                os.chmod(part, 0o700)


def test_files_are_for_this_user_alone(tmp_path: Path) -> None:
    """Also those of an earlier release, which everybody could read."""
    path = tmp_path / "new" / "store.db"
    names = ("", "-wal", "-shm", "-reserve", "-blobs")
    paths = [path.with_name(f"{path.name}{suffix}") for suffix in names]

    async def look(store: Store) -> list[Path]:
        await fill(store)
        return [file for file in (*paths, *paths[-1].iterdir()) if file.stat().st_mode & 0o077]

    before = os.umask(0o022)
    try:
        assert use(path, look) == []
        assert not path.parent.stat().st_mode & 0o077
        for file in path.parent.iterdir():
            file.chmod(0o755 if file.is_dir() else 0o644)
        assert use(path, survey) and use(path, look) == []
    finally:
        os.umask(before)


NOBODY = 65534


@pytest.mark.parametrize(
    ("part", "mode", "names"),
    [
        ("store.db", 0o400, r"attempt to write a readonly database at .*/store\.db"),
        ("store.db", 0, r"unable to open database file at .*/store\.db"),
        (".", 0o500, r"readonly database at .*/store\.db"),
        ("store.db-blobs", 0o500, r"permission denied at .*/store\.db-blobs"),
    ],
)
def test_what_may_not_be_written_is_named(own_folder: Path, part: str, mode: int, names: str) -> None:
    path = own_folder / "store" / "store.db"
    use(path, fill)
    # in this process SQLite would use a file again that is still open
    gc.collect()
    os.chmod(path.parent / part, mode)
    with pytest.raises(ArgumentError, match=rf"{names}; let the server's user \(uid \d+\) write it and its"):
        use(path, survey)


def test_a_folder_is_refused_and_keeps_its_rights(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(ArgumentError, match=r"store: .*, got is a directory at .*shared"):
        use(folder, fill)
    assert folder.stat().st_mode & 0o777 == 0o777
    assert list(tmp_path.iterdir()) == [folder]


def test_a_newer_format_is_refused(path: Path) -> None:
    use(path, fill)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ArgumentError, match="store: expected a file of format 1 or older, got format 99"):
        use(path, survey)


def test_a_file_of_others_is_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(ArgumentError, match="store: expected"):
        use(path, survey)
    path.write_bytes(b"no database at all" * 1000)
    with pytest.raises(ArgumentError, match="store: expected"):
        use(path, survey)
    assert path.read_bytes() == b"no database at all" * 1000


@pytest.mark.parametrize("address", ["", "sqlite:", "sqlite:///", "postgres://x", "store.db", "memory"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ArgumentError, match="store: expected sqlite"):
        open_store(address, "process", Limits())


@pytest.mark.parametrize("links", [True, False])
def test_a_payload_of_two_records_is_written_once(
    path: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the file system has no links there are two files; either way one record outlives the other."""
    if not links:

        def refuse(*_names: Path) -> None:
            raise OSError(errno.EPERM, "no links here")

        monkeypatch.setattr(os, "link", refuse)
    payload = (b"head", LARGE)

    async def work(store: Store) -> None:
        await store.commit(Put(SESSION, "s", payload), Put(REQUEST, "r", payload))
        files = [entry.stat() for entry in Path(f"{path}-blobs").iterdir()]
        assert len(files) == 2 and len({found.st_ino for found in files}) == (1 if links else 2)
        await store.commit(Put(SESSION, "s", (LARGE, b"later")))
        record = await store.get(REQUEST, "r")
        assert record is not None and b"".join(record.payload) == b"head" + LARGE
        await store.commit(Delete(REQUEST, "r"))
        record = await store.get(SESSION, "s")
        assert record is not None and b"".join(record.payload) == LARGE + b"later"

    use(path, work)
    assert len(list(Path(f"{path}-blobs").iterdir())) == 1


def test_the_writer_survives_any_fault(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(store: Store) -> None:
        for name in ("_write_files", "_write_together"):

            def fail(*_: object, name: str = name) -> None:
                raise AttributeError(name)

            with monkeypatch.context() as broken:
                broken.setattr(store, name, fail)
                with pytest.raises(AttributeError):
                    await asyncio.wait_for(store.commit(Put(SESSION, "a", (b"a",))), 10.0)
            await asyncio.wait_for(store.commit(Put(SESSION, name, (b"a",))), 10.0)
            assert await store.get(SESSION, name) is not None

    use(path, scenario)
