"""Renders frames of a trajectory with MuJoCo, in a child process.

A missing or broken OpenGL can end a process without an exception, so each backend (EGL, then OSMesa) runs in
a child: `python -m revolute_server.demo.film BACKEND JOB.npz FRAMES.npy`. The parent reads the file of
frames.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import mujoco

BACKENDS = ("egl", "osmesa")
GREY, RED, BLUE = (0.4, 0.4, 0.4, 1.0), (0.85, 0.1, 0.1, 1.0), (0.25, 0.4, 0.6, 1.0)
WIDTH, HEIGHT = 360, 360
RENDER_SECONDS = 90.0


def render_frames(
    mj_model: mujoco.MjModel, qpos: np.ndarray, posts: np.ndarray | None
) -> tuple[np.ndarray | None, str]:
    """Render one picture per state.

    Args:
        mj_model: the compiled robot.
        qpos: the states, [frames, nq].
        posts: lines to draw, [lines, 2 ends, xyz]: the last one, the target, in red, the others in grey.

    Returns:
        The pictures [frames, height, width, 3] (uint8) and the name of the backend; or None and the reason.
    """
    import mujoco

    reasons = []
    with tempfile.TemporaryDirectory(prefix="revolute-film-") as folder:
        job, frames = Path(folder) / "job.npz", Path(folder) / "frames.npy"
        binary = np.empty(mujoco.mj_sizeModel(mj_model), np.uint8)
        mujoco.mj_saveModel(mj_model, None, binary)
        np.savez(job, model=binary, qpos=qpos, posts=np.zeros((0, 2, 3)) if posts is None else posts)
        for backend in BACKENDS:
            failure = _run_child(backend, job, frames)
            if failure is None:
                return np.load(frames), backend
            reasons.append(f"{backend}: {failure}")
    return None, "no OpenGL to render with (" + "; ".join(reasons) + ")"


def _run_child(backend: str, job: Path, frames: Path) -> str | None:
    """Render in a child process; return None on success, otherwise the reason in one line."""
    command = [sys.executable, "-m", "revolute_server.demo.film", backend, str(job), str(frames)]
    environment = {**os.environ, "MUJOCO_GL": backend, "PYOPENGL_PLATFORM": backend}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=RENDER_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no picture within {RENDER_SECONDS:.0f} s"
    if done.returncode == 0 and frames.exists():
        return None
    last = done.stderr.strip().splitlines()[-1:] or [f"ended with status {done.returncode}"]
    return last[0][:120]


def _render(job: Path, frames: Path) -> None:
    """Render all states of a job file, in the child process."""
    import mujoco

    with np.load(job, allow_pickle=False) as data:
        binary, states, posts = data["model"], data["qpos"], data["posts"]
    with tempfile.NamedTemporaryFile(suffix=".mjb") as file:
        file.write(binary.tobytes())
        file.flush()
        model = mujoco.MjModel.from_binary_path(file.name)
    _brighten(model)
    state = mujoco.MjData(model)
    camera = _camera(model, state, states)
    pictures = []
    with mujoco.Renderer(model, HEIGHT, WIDTH) as renderer:
        for qpos in states:
            state.qpos[:] = qpos
            mujoco.mj_forward(model, state)
            renderer.update_scene(state, camera)
            _add_lines(renderer.scene, _skeleton(model, state), BLUE, 0.008 * camera.distance)
            _add_lines(renderer.scene, posts[:-1], GREY, 0.004 * camera.distance)
            _add_lines(renderer.scene, posts[-1:], RED, 0.004 * camera.distance)
            pictures.append(renderer.render())
    np.save(frames, np.stack(pictures))


def _camera(model: Any, state: Any, states: np.ndarray) -> Any:
    """Return a fixed camera that shows the moving bodies in the first state."""
    import mujoco

    state.qpos[:] = states[0]
    mujoco.mj_forward(model, state)
    moving = [g for g in range(model.ngeom) if model.body_weldid[model.geom_bodyid[g]] != 0]
    centres = state.geom_xpos[moving] if moving else state.xipos[1:]
    radii = model.geom_rbound[moving] if moving else np.zeros(len(centres))
    centre = (centres.min(axis=0) + centres.max(axis=0)) / 2
    radius = max(0.2, float((np.linalg.norm(centres - centre, axis=1) + radii).max()))
    camera = mujoco.MjvCamera()
    camera.lookat[:] = centre
    camera.distance = 2.1 * radius
    camera.azimuth, camera.elevation = 165.0, -25.0
    return camera


def _brighten(model: Any) -> None:
    """Light the scene from the camera, brighter if the file has no lights, and colour the ground."""
    import mujoco

    model.vis.headlight.active = 1
    model.vis.headlight.ambient[:] = 0.25 if model.nlight else 0.5
    model.vis.headlight.diffuse[:] = 0.25 if model.nlight else 0.5
    model.geom_rgba[model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE)] = (0.8, 0.82, 0.8, 1.0)


def _skeleton(model: Any, state: Any) -> np.ndarray:
    """Return lines from each moving body to its parent and to its shapes, [lines, 2 ends, xyz]."""
    children = [b for b in range(1, model.nbody) if model.body_parentid[b] != 0]
    shapes = [g for g in range(model.ngeom) if model.body_weldid[model.geom_bodyid[g]] != 0]
    bones = np.stack([state.xpos[model.body_parentid[children]], state.xpos[children]], axis=1)
    ends = np.stack([state.xpos[model.geom_bodyid[shapes]], state.geom_xpos[shapes]], axis=1)
    return np.concatenate([bones, ends])


def _add_lines(scene: Any, lines: np.ndarray, colour: tuple[float, ...], width: float) -> None:
    """Draw lines as thin capsules, up to the scene's limit of shapes."""
    import mujoco

    kind = mujoco.mjtGeom.mjGEOM_CAPSULE
    for first, second in lines[: scene.maxgeom - scene.ngeom]:
        line = scene.geoms[scene.ngeom]
        mujoco.mjv_initGeom(line, kind, np.zeros(3), np.zeros(3), np.zeros(9), np.array(colour, np.float32))
        mujoco.mjv_connector(line, kind, width, first, second)
        scene.ngeom += 1


if __name__ == "__main__":
    _render(Path(sys.argv[2]), Path(sys.argv[3]))
