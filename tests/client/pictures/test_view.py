"""The page in a browser: it connects, draws, plays, scrubs, shows arrows, and follows a session."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

import revolute
from tests.server.http.browser import CHROMIUM, Page, browser

pytest.importorskip("viser")
from revolute.view import ModelViewer
from revolute.view.scene import shape_mesh

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
SECONDS = 90.0


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """Return a tab that can draw in three dimensions, in software."""
    with browser("--use-angle=swiftshader", "--enable-unsafe-swiftshader") as tab:
        yield tab()


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _open(page: Page, address: str) -> None:
    page.open(address, 360, 240)
    page.wait("document.querySelector('canvas') && document.body.innerText.length > 0")


def test_a_height_field_is_drawn_as_its_surface() -> None:
    heights = "0 1 2  3 4 5  6 7 8  9 10 11"
    model = mujoco.MjModel.from_xml_string(
        f'''<mujoco><asset><hfield name="h" nrow="4" ncol="3" size="2 3 .5 1" elevation="{heights}"/></asset>
        <worldbody><geom type="hfield" hfield="h"/></worldbody></mujoco>'''
    )
    vertices, faces = shape_mesh(model, 0)
    assert len(faces) == 2 * 2 * 3 and np.allclose(vertices[:, 2], 0.5 * model.hfield_data)
    assert np.allclose(vertices[[0, -1], :2], [[-2, -3], [2, 3]])
    first, second, third = (vertices[faces[:, i]] for i in range(3))
    normals = np.cross(second - first, third - first)
    assert (normals[:, 2] > 0).all()  # all seen from above
    assert np.isclose(normals[:, 2].sum() / 2, 4 * 6)


def _arrows(viewer: Any) -> int:
    """Return the number of arrows that are shown."""
    return sum(len(handle.points) for handle in viewer.scene._arrows.values())


@needs_browser
def test_a_trajectory(in_process: revolute.Simulator, page: Page, port: int) -> None:
    model = in_process.load_model("cartpole")
    trajectory = in_process.rollout(model, model.qpos0, model.qvel0, np.ones((2, 50, 1)))
    asked = []

    def gradient() -> revolute.Gradient:
        asked.append(True)
        return trajectory.backward(np.ones_like(trajectory.qpos))

    with trajectory.view(gradient=gradient, port=port) as viewer:
        _open(page, viewer.address)
        page.wait("document.body.innerText.includes('contact forces')")
        # it plays
        moving = viewer.scene.data.qpos[0]
        _wait(lambda: viewer.scene.data.qpos[0] != moving)
        page.evaluate(_CLICK % "play")
        assert not asked
        page.evaluate(_CLICK % "gradient")
        _wait(lambda: bool(asked) and _arrows(viewer) > 0)
        # scrub: write a time into the field beside the slider
        page.evaluate(_WRITE % "0.1")
        _wait(lambda: np.array_equal(viewer.scene.data.qpos, trajectory.qpos[0, round(0.1 / model.timestep)]))
        picture = np.asarray(Image.open(io.BytesIO(page.picture())).convert("RGB"))
        assert picture.std() > 5  # not empty
    assert len(asked) == 1


# the nearest box above which the label stands
_CLICK = """
(() => {
  const label = [...document.querySelectorAll('label')].find(each => each.innerText == '%s');
  let row = label;
  while (!row.querySelector('input[type=checkbox]')) row = row.parentElement;
  row.querySelector('input[type=checkbox]').click();
})()
"""
_WRITE = """
(() => {
  const field = document.querySelector('input[inputmode=decimal]');
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, '%s');
  field.dispatchEvent(new Event('input', {bubbles: true}));
})()
"""


def test_a_model_with_a_slider_per_joint(in_process: revolute.Simulator, port: int) -> None:
    model = in_process.load_model("ant")
    with ModelViewer(model, port=port) as viewer:
        assert list(viewer.sliders) == list(model.joint_names[1:])
        viewer.sliders[model.joint_names[2]].value = 0.7
        _wait(lambda: viewer.scene.data.qpos[8] == 0.7)


@needs_browser
def test_a_session_that_somebody_else_steps(
    over_grpc: revolute.Simulator, server: object, page: Page, port: int
) -> None:
    model = over_grpc.load_model("laikago")
    with over_grpc.session(model, batch=2) as session:
        session.reset(model.keyframes["home"])
        watched = over_grpc.open_session(model, session.id)
        with watched.view(port=port) as viewer:
            _open(page, viewer.address)
            page.wait("document.body.innerText.includes('step 0')")
            after = session.step(model.keyframes["home"][7:], 7)
            page.wait("document.body.innerText.includes('step 7')")
            np.testing.assert_array_equal(viewer.scene.data.qpos, after.qpos[0])
            page.evaluate(_CLICK % "contact forces")
            _wait(lambda: _arrows(viewer) == 4)
            session.close()
            page.wait("document.body.innerText.includes('expected')")
