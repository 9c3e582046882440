"""Shows models, trajectories and running sessions in a web browser, with viser.

    viewer = trajectory.view(gradient=gradient)     # or session.view()
    print(viewer.address)

A thread of this process serves the page until `close`.
"""

from __future__ import annotations

try:
    import mujoco  # noqa: F401
    import viser  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"revolute.view needs {error.name}; install it with: pip install 'revolute[view]'", name=error.name
    ) from error

from .live import SessionViewer
from .posed import ModelViewer
from .replay import TrajectoryViewer
from .viewer import PORT, Viewer

__all__ = ["PORT", "ModelViewer", "SessionViewer", "TrajectoryViewer", "Viewer"]
