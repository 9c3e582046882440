"""Draws frames of a motion with MuJoCo's renderer, in a child process (`painter`)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import mujoco
import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError, UnavailableError
from .arrows import Arrows, checked_gradient, contact_arrows, gradient_arrows
from .camera import Camera, chosen_camera, placed_camera, sphere_around
from .motion import Motion

Picture = npt.NDArray[np.uint8]

_FIRST_SECONDS = 90.0
"""Time within which the first frame must arrive; software rendering on a busy machine takes some seconds."""

_LARGEST = 4096
"""Pixels along one side."""


def pictures(
    motion: Motion,
    steps: Sequence[int],
    *,
    camera: Camera | str | None = None,
    size: tuple[int, int] = (640, 480),
    contacts: bool = False,
    gradient: Any = None,
    lines: Sequence[Arrows] = (),
) -> Iterator[Picture]:
    """Draw states, one after the other.

    Args:
        motion: the motion.
        steps: numbers of the states.
        camera: as for `render`.
        size: width and height in pixels.
        contacts: draw contact forces as arrows.
        gradient: gradient to draw as arrows, as for `render`.
        lines: lines to draw in all pictures, without heads.

    Yields:
        Pictures, [height, width, 3].

    Raises:
        ArgumentError: an argument does not fit the model.
        UnavailableError: there is no OpenGL to draw with.
    """
    width, height = _checked_size(size)
    radius = sphere_around(motion.model, motion.poses[:1])[1]
    settings = {
        "size": [width, height],
        "radius": radius,
        "camera": placed_camera(chosen_camera(camera, motion.model), motion),
    }
    arrows = list(enumerate(contact_arrows(motion, steps, radius))) if contacts else []
    if gradient is not None:
        checked = checked_gradient(motion, gradient)
        arrows += [
            (index, gradient_arrows(motion, checked, step, radius)) for index, step in enumerate(steps)
        ]
    with tempfile.TemporaryDirectory(prefix="revolute-render-") as folder:
        job = Path(folder) / "job.npz"
        np.savez(
            job,
            model=_binary(motion.model),
            settings=json.dumps(settings),
            **asdict(motion.poses[list(steps)]),
            **_rows("arrow", arrows),
            **_rows("line", [(-1, each) for each in lines]),
        )
        yield from _with_some_backend(job, (height, width, 3), len(steps))


def _rows(kind: str, arrows: Sequence[tuple[int, Arrows]]) -> dict[str, Any]:
    """Return arrows of many frames as arrays: ends and colour, and the number of the frame."""
    rows = [
        np.column_stack([each.ends.reshape(-1, 6), np.tile([*each.rgb, 1.0], (len(each.ends), 1))])
        for _, each in arrows
    ]
    frames = [np.full(len(each.ends), index) for index, each in arrows]
    return {
        f"{kind}s": np.concatenate([np.zeros((0, 10)), *rows]),
        f"{kind}_frames": np.concatenate([np.zeros(0, int), *frames]),
    }


def _binary(model: mujoco.MjModel) -> npt.NDArray[np.uint8]:
    binary = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, binary)
    return binary


def _backends() -> tuple[str, ...]:
    """Return the values of MUJOCO_GL to try; an empty one is MuJoCo's choice."""
    chosen = os.environ.get("MUJOCO_GL", "").lower()
    if chosen:
        return (chosen,)
    return ("egl", "osmesa") if sys.platform == "linux" else ("",)


def _with_some_backend(job: Path, shape: tuple[int, int, int], count: int) -> Iterator[Picture]:
    """Yield the frames of the first backend that gives one."""
    reasons = []
    for backend in _backends():
        with _Child(backend, job, shape) as child:
            first = child.frame()
            if first is not None:
                yield first
                for _ in range(count - 1):
                    frame = child.frame()
                    if frame is None:
                        raise UnavailableError(
                            f"render: expected {count} pictures, got fewer ({child.failure()})"
                        )
                    yield frame
                return
            reasons.append(f"{backend or 'OpenGL'}: {child.failure()}")
    advice = "install libegl1 or libosmesa6" if sys.platform == "linux" else "log in with a display"
    raise UnavailableError(f"render: expected OpenGL to draw with, got none ({'; '.join(reasons)}); {advice}")


class _Child:
    """The process that draws, during a `with` block."""

    def __init__(self, backend: str, job: Path, shape: tuple[int, int, int]) -> None:
        self._shape = shape
        self._log = job.with_name(f"{backend or 'default'}.log")
        environment = dict(os.environ)
        if backend:
            environment |= {"MUJOCO_GL": backend, "PYOPENGL_PLATFORM": backend}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.painter", str(job)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=job.parent,  # MuJoCo writes its log into the current folder
            )
        self._too_late = threading.Timer(_FIRST_SECONDS, self._process.kill)
        self._too_late.daemon = True
        self._too_late.start()

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *exception: object) -> None:
        self._too_late.cancel()
        self._process.kill()
        self._stream.close()
        self._process.wait()

    def frame(self) -> Picture | None:
        """Return the next frame; None if the process ended before."""
        content = bytearray(int(np.prod(self._shape)))
        view = memoryview(content)
        while view:
            got = self._stream.readinto(view)  # type: ignore[attr-defined]
            if not got:
                return None
            view = view[got:]
        self._too_late.cancel()
        return np.frombuffer(content, np.uint8).reshape(self._shape)

    def failure(self) -> str:
        """Return in one line why there was no frame."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:120] if lines else f"ended with status {self._process.returncode}"

    @property
    def _stream(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout


def _checked_size(size: Any) -> tuple[int, int]:
    """Return width and height.

    Raises:
        ArgumentError: they are not two whole numbers of a picture that can be drawn.
    """
    try:
        width, height = (int(side) for side in size)
        fits = (width, height) == tuple(size) and 16 <= min(width, height) <= max(width, height) <= _LARGEST
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ArgumentError.expected("size", f"width and height from 16 to {_LARGEST} pixels", repr(size))
    return width, height
