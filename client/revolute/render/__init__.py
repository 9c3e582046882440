"""Pictures of a motion, drawn off-screen by MuJoCo's renderer: videos, animated pictures, film strips.

    trajectory.render("hop.mp4")
    trajectory.render("hop.png", frames=6, camera="track", contacts=True)

`Motion` is the motion to show, `Poses` has the poses of its bodies, `Camera` the point of view, and `Arrows`
are drawn on top.
"""

from __future__ import annotations

try:
    import mujoco  # noqa: F401
    import PIL  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"revolute.render needs {error.name}; install it with: pip install 'revolute[render]'",
        name=error.name,
    ) from error

from .arrows import Arrows, contact_arrows, gradient_arrows
from .camera import Camera
from .files import render
from .frames import pictures
from .html import animated_html
from .motion import Motion, compiled_model, motion_of
from .poses import Poses

__all__ = [
    "Arrows",
    "Camera",
    "Motion",
    "Poses",
    "animated_html",
    "compiled_model",
    "contact_arrows",
    "gradient_arrows",
    "motion_of",
    "pictures",
    "render",
]
