"""Scenes for the contact model "mujoco": every kind of constraint acts in them."""

from __future__ import annotations

import mujoco
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BOX = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 1" friction="0.6"/>
<body pos="0 0 0.1"><freejoint/><geom type="box" size=".1 .15 .1" mass="2" friction="0.6"/></body>
</worldbody></mujoco>"""

EVERY_KIND = """<mujoco><option timestep="0.003" impratio="3"/><worldbody>
<geom name="floor" type="plane" size="5 5 1" friction="0.7 0.02 0.002" margin="0.004" gap="0.002"/>
<body pos="0 0 .0995"><freejoint/><geom size=".1" condim="1" mass="1" solref="0.03 0.8"/></body>
<body pos=".3 0 .0992"><freejoint/><geom size=".1" condim="3" mass="1" solref="-3000 -60" solmix="3"/></body>
<body pos=".6 0 .0995"><freejoint/><geom size=".1" condim="4" mass="1" priority="1" friction="0.5 0.03 0.001"
  solimp="0.7 0.9 0.004 0.3 3"/></body>
<body pos=".9 0 .0995"><freejoint/><geom size=".1" condim="6" mass="1" solref="0.001 1"
  friction="0.9 0.05 0.01"/></body>
<body pos="1.2 0 .0993"><freejoint/><geom name="own" size=".1" mass="1"/></body>
<body pos="1.5 0 .0293"><freejoint/>
  <geom type="capsule" fromto="-.1 .02 0 .1 0 .001" size=".03" mass=".5"/></body>
<body pos="1.5 0.02 .088"><freejoint/>
  <geom type="capsule" fromto="-.02 .1 0 0 -.1 .001" size=".03" mass=".2"/></body>
<body name="a" pos="0 .5 .5"><joint type="ball" range="0 0.3" limited="true" damping=".01"/>
  <geom type="capsule" fromto="0 0 0 .2 0 0" size=".03" mass=".4" contype="0"/>
  <body name="b" pos=".2 0 0">
    <joint axis="0 1 0" range="-.1 .1" limited="true" frictionloss=".3" margin=".02"/>
    <geom type="capsule" fromto="0 0 0 .2 0 0" size=".03" mass=".4" contype="0"/>
    <body name="c" pos=".2 0 0"><joint axis="0 0 1" frictionloss=".01"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".03" mass=".4" contype="0"/></body></body></body>
<body name="e" pos=".6 .5 .5"><freejoint/><geom type="box" size=".05 .04 .03" mass=".3" pos=".05 0 0"/></body>
<body name="f" pos="1 .5 .5"><freejoint/><geom type="box" size=".05 .04 .03" mass=".3" pos=".01 .02 0"/>
  <site name="sf" pos=".05 .01 0" euler="10 20 30"/></body>
<body name="g" pos="1.2 .5 .5"><joint name="h3" axis="0 1 0"/>
  <geom type="box" size=".05 .04 .03" mass=".3"/><site name="sg" euler="5 0 10"/></body>
<body name="k" pos="1.6 .5 .5"><joint name="h4" axis="0 1 0" damping=".05"/>
  <geom type="capsule" fromto="0 0 0 .1 0 0" size=".02" mass=".3"/>
  <body pos=".1 0 0"><joint name="h5" axis="0 1 0" stiffness=".3" springref="10"/>
    <geom type="capsule" fromto="0 0 0 .1 0 0" size=".02" mass=".3"/></body></body>
</worldbody>
<contact><pair geom1="own" geom2="floor" condim="6" friction="0.8 0.6 0.02 0.003 0.004"
  solreffriction="0.03 1" margin="0.003"/></contact>
<equality><connect body1="c" body2="e" anchor=".2 0 0"/><weld body1="e" body2="f" torquescale="0.7"
  solref="0.01 1"/><weld site1="sf" site2="sg"/>
<joint joint1="h4" joint2="h5" polycoef="0.01 -0.8 0.3 0.1 0.05" solimp="0.8 0.95 0.05"/></equality>
<actuator><position joint="h4" kp="3" kv=".1"/><motor joint="h5" gear="2" forcerange="-1 1"/></actuator>
</mujoco>"""

WALKER = """<mujoco><option timestep="0.004"/><worldbody>
<geom type="plane" size="9 9 1" friction="0.8" condim="3"/>
<body pos="0 0 0.46"><freejoint/><geom type="box" size=".15 .1 .04" mass="3" contype="0" conaffinity="0"/>
<body pos=".12 0 0"><joint name="hip" axis="0 1 0" range="-40 40" damping=".4" armature=".01"/>
  <geom type="capsule" fromto="0 0 0 .05 0 -.2" size=".03" mass=".5"/>
  <body pos=".05 0 -.2"><joint name="knee" axis="0 1 0" range="-80 5" frictionloss=".2" armature=".01"/>
    <geom type="capsule" fromto="0 0 0 -.05 0 -.2" size=".025" mass=".3"/></body></body>
<body pos="-.12 0.05 0"><joint name="hind" axis="1 1 0" range="-40 40" damping=".4" armature=".01"/>
  <geom type="capsule" fromto="0 0 0 0 .05 -.41" size=".03" mass=".7"/></body>
</body></worldbody>
<actuator><position joint="hip" kp="40" kv="1"/><motor joint="knee" gear="3"/><motor joint="hind"/></actuator>
</mujoco>"""

SCENES = {"box": BOX, "every kind": EVERY_KIND, "walker": WALKER}
"""Texts by name."""

STEPS = {"box": 60, "every kind": 12, "walker": 30}
"""Steps from the start until the state that is compared."""

INTEGRATORS = ("Euler", "implicitfast", "implicit", "RK4")
CONES = ("pyramidal", "elliptic")


def scene(name: str, cone: str, integrator: str) -> str:
    """Return a scene's text with another cone and integrator."""
    return SCENES[name].replace("<option", f'<option cone="{cone}" integrator="{integrator}"', 1)


def reference(text: str) -> mujoco.MjModel:
    """Compile a scene so that MuJoCo solves its constraints to rounding, from a cold start."""
    model = mujoco.MjModel.from_xml_string(text)
    option = model.opt
    option.jacobian, option.solver, option.tolerance = 0, 2, 0
    option.iterations, option.ls_iterations, option.ls_tolerance = 200, 200, 1e-10
    off = mujoco.mjtDisableBit
    option.disableflags |= off.mjDSBL_WARMSTART | off.mjDSBL_ISLAND | off.mjDSBL_AUTORESET
    return model


def state_in_contact(model: mujoco.MjModel, steps: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Return qpos, qvel, ctrl after some steps and a push, so that contacts slide and bodies move."""
    random = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    for _ in range(steps):
        data.ctrl[:] = 0.2 * random.normal(size=model.nu)
        mujoco.mj_step(model, data)
    data.qvel[:] += 0.3 * random.normal(size=model.nv)
    return data.qpos.copy(), data.qvel.copy(), data.ctrl.copy()
