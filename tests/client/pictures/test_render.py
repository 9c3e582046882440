"""Pictures show the states, at the places where a pinhole camera sees them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import revolute
from revolute.render import Camera, motion_of, pictures
from revolute.render.files import shown_steps

from .conftest import STEPS

imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")

DISTANCE, HEIGHT = 5.0, 1.5
SIDE = Camera(azimuth=90, elevation=0, distance=DISTANCE, lookat=(0, 0, HEIGHT))
SIZE = (96, 96)
FOCAL = SIZE[1] / 2 / math.tan(math.radians(45) / 2)  # MuJoCo's default field of view is 45 degrees
needs_opengl = pytest.mark.usefixtures("opengl")


def _red(picture: np.ndarray) -> np.ndarray:
    """Return row and column of the middle of what is red; NaN without any."""
    colours = np.asarray(picture, dtype=int)[..., :3]
    rows, columns = np.nonzero(colours[..., 0] > 40 + 2 * colours[..., 1:].max(axis=-1))
    return np.array([rows.mean(), columns.mean()]) if len(rows) > 4 else np.full(2, np.nan)


@needs_opengl
def test_the_ball_is_where_a_pinhole_camera_sees_it(ball: revolute.Trajectory) -> None:
    for env in range(2):
        shown = [0, STEPS // 2, STEPS]
        for step, picture in zip(
            shown, pictures(motion_of(ball, env), shown, camera=SIDE, size=SIZE), strict=True
        ):
            above = ball.qpos[env, step, 2] - HEIGHT
            # half a pixel of the middle, one of the edge
            expected = [SIZE[1] / 2 - 0.5 - FOCAL * above / DISTANCE, SIZE[0] / 2 - 0.5]
            np.testing.assert_allclose(_red(picture), expected, atol=1.5)


@needs_opengl
def test_a_film_strip(ball: revolute.Trajectory, tmp_path: Path) -> None:
    path = ball.render(tmp_path / "ball.png", frames=3, size=SIZE, camera=SIDE)
    strip = np.asarray(Image.open(path))
    width = SIZE[0] + 6
    assert strip.shape[1] == 3 * width - 6
    rows = [_red(strip[:, width * index : width * index + SIZE[0]])[0] for index in range(3)]
    assert rows[0] + 2 < rows[1] < rows[2] - 2


@needs_opengl
def test_an_animated_picture(ball: revolute.Trajectory, tmp_path: Path) -> None:
    path = ball.render(tmp_path / "ball.gif", size=SIZE, camera=SIDE, env=1, speed=0.5)
    with Image.open(path) as image:
        assert image.n_frames == 17  # 0.4 s at half speed, 20 per second, and the start
        assert image.info["duration"] == 50
        first = _red(np.asarray(image.convert("RGB")))[0]
        image.seek(image.n_frames - 1)
        assert _red(np.asarray(image.convert("RGB")))[0] < first - 2


@needs_opengl
def test_a_video(ball: revolute.Trajectory, tmp_path: Path) -> None:
    path = ball.render(tmp_path / "ball.mp4", size=SIZE, camera=SIDE, fps=25)
    frames = imageio_ffmpeg.read_frames(str(path))
    facts = next(frames)
    assert (facts["size"], facts["fps"]) == (SIZE, 25.0)
    shown = [np.frombuffer(frame, np.uint8).reshape(SIZE[1], SIZE[0], 3) for frame in frames]
    assert len(shown) == 11
    assert _red(shown[-1])[0] > _red(shown[0])[0] + 2


@needs_opengl
def test_cameras(ball: revolute.Trajectory) -> None:
    motion = motion_of(ball)
    tracked = [_red(each) for each in pictures(motion, [0, STEPS], camera="track", size=SIZE)]
    np.testing.assert_allclose(tracked, np.full((2, 2), SIZE[0] / 2 - 0.5), atol=1.5)
    (above,) = pictures(motion, [STEPS], camera="above", size=SIZE)
    np.testing.assert_allclose(_red(above), np.full(2, SIZE[0] / 2 - 0.5), atol=1.5)
    whole = [_red(each) for each in pictures(motion, [0, STEPS], size=SIZE)]
    assert np.isfinite(whole).all()
    assert whole[0][0] < whole[1][0] - 2


def test_the_frames_of_a_video(ball: revolute.Trajectory) -> None:
    assert shown_steps(motion_of(ball), fps=10, speed=1) == [0, 5, 10, 15, 20]
    assert shown_steps(motion_of(ball), fps=10, speed=2) == [0, 10, 20]
    assert shown_steps(motion_of(ball), fps=100, speed=1)[:4] == [0, 0, 1, 2]


def test_states_after_divergence_are_left_out(in_process: revolute.Simulator) -> None:
    text = """
    <mujoco><worldbody><body><joint type="slide"/><geom size="0.1"/></body></worldbody>
    <actuator><motor joint="slide"/></actuator></mujoco>
    """
    model = in_process.load_model(text.replace('type="slide"', 'name="slide" type="slide"'))
    ctrl = np.zeros((4, 1))
    ctrl[2:] = 1e308
    trajectory = in_process.rollout(model, [0.0], [0.0], ctrl)
    assert trajectory.status.any()
    motion = motion_of(trajectory)
    assert motion.steps == int(trajectory.diverged_step)
    assert np.isfinite(motion.qpos).all()


MISTAKES = {
    "path": ({"path": "ball.avi"}, r"path: expected a name with \.mp4, \.gif, \.png"),
    "camera": ({"camera": "front"}, "camera: expected a name among above, \"track\", got 'front'"),
    "body": ({"camera": Camera(track="foot")}, "camera.track: expected a name among world, ball"),
    "env": ({"env": 2}, "env: expected a number from 0 to 1, got 2"),
    "size": ({"size": (5, 5)}, "size: expected width and height"),
    "odd": ({"path": "ball.mp4", "size": (33, 32)}, "size: expected even numbers"),
    "speed": ({"speed": 0}, "speed: expected a positive number"),
    "frames": ({"frames": 0}, "frames: expected a whole number of at least 1"),
    "gradient": ({"gradient": {}}, "gradient: expected a gradient by ctrl or qpos"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str, ball: revolute.Trajectory, tmp_path: Path) -> None:
    arguments, text = MISTAKES[mistake]
    path = tmp_path / str(arguments.get("path", "ball.png"))
    rest = {name: value for name, value in arguments.items() if name != "path"}
    with pytest.raises(revolute.ArgumentError, match=text):
        ball.render(path, **rest)
    assert not path.exists()


def test_without_opengl_the_error_says_so(
    ball: revolute.Trajectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    with pytest.raises(
        revolute.UnavailableError, match=r"OpenGL to draw with, got none \(nonsense: .*install"
    ):
        ball.render(tmp_path / "ball.png")
    html = ball._repr_html_()
    assert "<img" not in html
    assert "revolute trajectory" in html


@needs_opengl
def test_a_notebook_shows_it(ball: revolute.Trajectory) -> None:
    html = ball._repr_html_()
    assert 'src="data:image/gif;base64,' in html
    assert "&lt;revolute trajectory" in html
