"""A process that compiles models from untrusted files, one after the other. It may be killed at any time.

It talks to the server over one socket; counts are uint64, little-endian, and documents are those of
`store.codec`:

    worker -> server   its process id, when it is ready
    server -> worker   count | document: text or builtin, name, assets, options; memory: limit in bytes
    worker -> server   counts of document and binary, bytes of the engine's copy | document | binary

On success the document of the answer is a model (`revolute_engine.model_document`) without its
`mujoco_model`, which is the binary. If the request has `mjcf`, the binary is the model's MJCF text, and the
document has its `assets`. On failure the binary is empty, and the document has one of `error` (a
RevoluteError), `fault` (the traceback of any other exception) and `no_memory`.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import socket
import struct
import traceback
from collections.abc import Mapping
from typing import Any

import mujoco

from revolute.contract.errors import ModelError, RevoluteError
from revolute_engine import load_model, to_mjcf_files
from revolute_engine.model_document import to_document

from ..store.codec import decode, encode

PROCESS_ID = COUNT = struct.Struct("<Q")
COUNTS = struct.Struct("<QQQ")

_WARM_UP = b"<mujoco><worldbody><body><joint/><geom size='1'/></body><geom size='1'/></worldbody></mujoco>"

_NO_MEMORY = re.compile(r"could not (allocate|create mjModel)|out of memory|bad_alloc", re.IGNORECASE)
"""Messages of MuJoCo when an allocation fails."""

_STACK = 8 * 1024**2
"""Address space of a thread's stack; little of it is used."""

_HEAP = 64 * 1024**2
"""Address space that the allocator may take ahead of need; little of it is used.

Each `MjData` takes 13 MiB for its arena even if the model is small, and the allocator cannot always use the
place of a freed one again.
"""


def warm_up() -> None:
    """Compile a small model, so that everything is initialised before the next one."""
    load_model(_WARM_UP, allow_files=False, warn=False)


def anonymous_bytes(process: int | str = "self") -> int:
    """Return the bytes of a process that are not shared with files; 0 where the system does not tell."""
    return _pages(process, lambda fields: fields[1] - fields[2])


def serve(connection: socket.socket) -> None:
    """Answer requests until the server closes the connection."""
    warm_up()
    connection.sendall(PROCESS_ID.pack(os.getpid()))
    while (count := _received(connection, COUNT.size)) is not None:
        payload = _received(connection, COUNT.unpack(count)[0])
        if payload is None:
            return
        document, binary, size = _compiled(decode([payload]))
        del payload
        parts = encode(document)
        length = sum(memoryview(part).nbytes for part in parts)
        connection.sendall(COUNTS.pack(length, len(binary), size))
        for part in (*parts, binary):
            connection.sendall(part)


def _compiled(request: Mapping[str, Any]) -> tuple[dict[str, Any], memoryview, int]:
    """Compile a model; return the document, the binary and the size in bytes of the engine's copy."""
    try:
        _limit_memory(request["memory"])
        # bytes are always a model's text, never a name or a path
        source, assets = request["text"] or request["builtin"], request["assets"] or None
        if request.get("mjcf"):
            text, files = to_mjcf_files(source, assets=assets, **request["options"])
            return {"assets": files}, memoryview(text.encode()), 0
        model = load_model(
            source,
            assets=assets,
            name=request["name"] or None,
            allow_files=False,
            # warnings are shown by the client
            warn=False,
            **request["options"],
        )
        document = to_document(model)
        return document, document.pop("mujoco_model").data, model.native.bytes
    except Exception as error:
        return _failure(error), memoryview(b""), 0
    finally:
        _limit_memory(None)


def _failure(error: Exception) -> dict[str, Any]:
    """Return the document of a failure."""
    is_of_mujoco = isinstance(error, ModelError | mujoco.FatalError)
    if isinstance(error, MemoryError) or (is_of_mujoco and _NO_MEMORY.search(str(error))):
        return {"no_memory": True}
    if isinstance(error, RevoluteError):
        described = {"reason": error.reason, "message": error.message, "argument": error.argument}
        return {"error": described}
    return {"fault": "".join(traceback.format_exception(error))}


def _limit_memory(count: int | None) -> None:
    """Let the process allocate at most `count` bytes more than now; None for no limit."""
    # some systems on which the server can be imported lack this module
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = most
    if count is not None and (now := _pages("self", lambda fields: fields[5])):
        # MuJoCo reads meshes on as many threads as there are cores
        limit = now + count + _STACK * (os.cpu_count() or 1) + _HEAP
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


def _pages(process: int | str, choose: Any) -> int:
    """Return a field of /proc/<process>/statm in bytes; 0 on systems without it."""
    try:
        with open(f"/proc/{process}/statm", encoding="ascii") as file:
            return int(choose([int(field) for field in file.read().split()])) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return 0


def _received(connection: socket.socket, count: int) -> bytearray | None:
    """Return the next `count` bytes; None if the connection ends earlier."""
    content = bytearray(count)
    view = memoryview(content)
    while view:
        got = connection.recv_into(view)
        if not got:
            return None
        view = view[got:]
    return content
