"""Pictures come from a child process; without OpenGL the answer is a sentence, not a crash."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from revolute_server.demo import film

BALL = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 0.5"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
  </worldbody>
</mujoco>
"""


def test_pictures_or_the_reason_why_not() -> None:
    model = mujoco.MjModel.from_xml_string(BALL)
    posts = np.array([[[0, 0, 0], [0, 0, 1]]], dtype=float)
    pictures, how = film.render_frames(model, np.tile(model.qpos0, (2, 1)), posts)
    if pictures is None:
        assert "egl" in how
        assert "osmesa" in how
        return
    assert pictures.shape == (2, film.HEIGHT, film.WIDTH, 3)
    assert pictures.std() > 1.0


def test_a_backend_that_cannot_start_gives_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(film, "BACKENDS", ("nonsense",))
    model = mujoco.MjModel.from_xml_string(BALL)
    pictures, how = film.render_frames(model, model.qpos0[None], None)
    assert pictures is None
    assert how.startswith("no OpenGL to render with (nonsense: ")
    assert "\n" not in how
