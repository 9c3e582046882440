"""Writes pictures of a motion to a file: .mp4, .gif, or a film strip as .png."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ..contract.errors import ArgumentError
from .camera import Camera
from .frames import Picture, pictures
from .motion import Motion, Recorded, motion_of

SUFFIXES = (".mp4", ".gif", ".png")

_GAP = 6
"""Pixels between the pictures of a film strip."""

_FONT = 13
"""Height of the times above the pictures of a film strip, in pixels."""


def render(
    trajectory: Recorded,
    path: str | os.PathLike[str],
    *,
    camera: Camera | str | None = None,
    size: tuple[int, int] | None = None,
    fps: float | None = None,
    speed: float = 1.0,
    frames: int = 6,
    env: int = 0,
    contacts: bool = False,
    gradient: Any = None,
) -> Path:
    """Write a video, an animated picture or a film strip; see `Trajectory.render`."""
    return render_motion(
        motion_of(trajectory, env),
        path,
        fps=fps,
        speed=speed,
        frames=frames,
        size=size,
        camera=camera,
        contacts=contacts,
        gradient=gradient,
    )


def render_motion(
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    fps: float | None = None,
    speed: float = 1.0,
    frames: int = 6,
    size: tuple[int, int] | None = None,
    **drawn: Any,
) -> Path:
    """Write pictures of a motion; arguments as for `Trajectory.render`.

    Raises:
        ArgumentError: the suffix or another argument is wrong.
        UnavailableError: there is no OpenGL to draw with.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise ArgumentError.expected("path", f"a name with {', '.join(SUFFIXES)}", repr(str(path)))
    _check_positive("speed", speed)
    if suffix == ".png":
        if isinstance(frames, bool) or not isinstance(frames, (int, np.integer)) or frames < 1:
            raise ArgumentError.expected("frames", "a whole number of at least 1", repr(frames))
        steps = np.linspace(0, motion.steps, frames).round().astype(int).tolist()
        drawn_pictures = list(pictures(motion, steps, size=size or (240, 240), **drawn))
        _film_strip(drawn_pictures, [step * motion.timestep for step in steps]).save(file, optimize=True)
        return file
    rate = _rate(fps, 30.0 if suffix == ".mp4" else 20.0)
    width, height = size or ((640, 480) if suffix == ".mp4" else (320, 240))
    if suffix == ".gif":
        # times in a GIF are whole hundredths of a second
        rate = 100 / max(2, round(100 / rate))
    stream = pictures(motion, shown_steps(motion, rate, speed), size=(width, height), **drawn)
    if suffix == ".gif":
        write_gif(file, stream, rate)
    else:
        _write_mp4(file, stream, (width, height), rate)
    return file


def shown_steps(motion: Motion, fps: float, speed: float) -> list[int]:
    """Return the state of each frame of a video: frame k shows time k speed / fps."""
    count = math.floor(motion.duration * fps / speed + 1e-9) + 1
    return [motion.step_at(index * speed / fps) for index in range(count)]


def write_gif(file: Any, stream: Iterable[Picture], fps: float) -> None:
    """Write an animated picture that repeats.

    Args:
        file: path, or a binary file.
        stream: the frames.
        fps: frames per second.
    """
    images: Iterator[Image.Image] = (Image.fromarray(frame).quantize(128) for frame in stream)
    first = next(images)
    duration = round(1000 / fps)
    first.save(file, format="GIF", save_all=True, append_images=images, duration=duration, loop=0)


def _write_mp4(file: Path, stream: Iterable[Picture], size: tuple[int, int], fps: float) -> None:
    """Write a video that browsers play."""
    if size[0] % 2 or size[1] % 2:
        raise ArgumentError.expected("size", "even numbers of pixels for .mp4", repr(size))
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise ImportError(
            "revolute.render needs imageio-ffmpeg for .mp4; install it with: pip install 'revolute[render]'"
        ) from error
    frames = iter(stream)
    first = next(frames)
    writer = imageio_ffmpeg.write_frames(
        str(file), size, fps=fps, codec="libx264", macro_block_size=2, ffmpeg_log_level="error"
    )
    writer.send(None)
    try:
        writer.send(first.tobytes())
        for frame in frames:
            writer.send(frame.tobytes())
    finally:
        writer.close()


def _film_strip(row: list[Picture], times: list[float]) -> Image.Image:
    """Return the pictures side by side, with their times above."""
    height, width = row[0].shape[:2]
    top = _FONT + 2 * _GAP
    strip = Image.new("RGB", (len(row) * (width + _GAP) - _GAP, height + top), "white")
    pen, font = ImageDraw.Draw(strip), ImageFont.load_default(_FONT)
    for index, (picture, time) in enumerate(zip(row, times, strict=True)):
        left = index * (width + _GAP)
        strip.paste(Image.fromarray(picture), (left, top))
        pen.text((left + width / 2, top / 2), f"{time:.2f} s", fill="black", font=font, anchor="mm")
    return strip


def _rate(fps: float | None, default: float) -> float:
    if fps is None:
        return default
    _check_positive("fps", fps)
    return float(fps)


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < math.inf:
        raise ArgumentError.expected(name, "a positive number", repr(value))
