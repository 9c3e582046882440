"""A small animated picture for notebooks."""

from __future__ import annotations

import base64
import io

from .files import shown_steps, write_gif
from .frames import pictures
from .motion import Recorded, motion_of

_FPS = 100 / 8
_SIZE = (240, 180)
_MOST_FRAMES = 32


def animated_html(trajectory: Recorded) -> str:
    """Return an <img> element with the motion of the first environment; a long one is shown faster.

    Raises:
        RevoluteError: the states cannot be had or drawn.
    """
    motion = motion_of(trajectory)
    speed = max(1.0, motion.duration * _FPS / _MOST_FRAMES)
    content = io.BytesIO()
    write_gif(content, pictures(motion, shown_steps(motion, _FPS, speed), size=_SIZE), _FPS)
    data = base64.b64encode(content.getvalue()).decode("ascii")
    return f'<img alt="the motion of the trajectory" src="data:image/gif;base64,{data}"/>'
