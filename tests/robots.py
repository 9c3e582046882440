"""Real robots from installed packages, and small models written for the tests."""

from importlib.util import find_spec
from pathlib import Path


def _package_folder(name: str) -> Path:
    """Return the folder of an installed package without importing it."""
    spec = find_spec(name)
    assert spec is not None and spec.submodule_search_locations, f"package {name} is not installed"
    return Path(next(iter(spec.submodule_search_locations)))


LAIKAGO_HEIGHT = 0.518
"""Height in metres at which that robot's feet touch the ground in its zero pose."""


def laikago_urdf() -> Path:
    """Return pybullet's Laikago: 19 positions, 18 velocities with a free base, 25.567 kg."""
    return _package_folder("pybullet_data") / "laikago" / "laikago_toes_zup.urdf"


def gymnasium_ant() -> Path:
    """Return Gymnasium's Ant: 15 positions, 14 velocities, 8 actuators."""
    return _package_folder("gymnasium") / "envs" / "mujoco" / "assets" / "ant.xml"


def gymnasium_model(name: str) -> Path:
    """Return another of Gymnasium's models, e.g. "hopper"."""
    return gymnasium_ant().with_name(f"{name}.xml")


THREE_TREES = """
<mujoco model="three_trees">
  <compiler angle="radian"/>
  <option timestep="0.002" gravity="0.3 -0.2 -9.81"/>
  <worldbody>
    <body name="brick" pos="0 0 2" quat="0.8 0.1 -0.5 0.3">
      <freejoint name="root"/>
      <inertial pos="0.02 -0.01 0.03" quat="0.9 0.2 0.1 -0.3" mass="1.3" diaginertia="0.01 0.02 0.025"/>
      <body name="flap" pos="0.1 0 0" quat="0.7 0.7 0 0.1">
        <joint name="flap" type="hinge" axis="0.2 1 -0.3" pos="0.01 0.02 0.03" damping="0.05"/>
        <inertial pos="0 0.1 0" mass="0.4" diaginertia="0.002 0.001 0.002"/>
      </body>
    </body>
    <body name="arm" pos="1 0 1">
      <joint name="ball" type="ball" stiffness="2.5" damping="0.1" pos="0.05 0 0"/>
      <inertial pos="0.1 0.2 -0.3" quat="0.5 0.5 0.1 0.2" mass="0.7" diaginertia="0.01 0.008 0.006"/>
      <body name="wrist" pos="0 0.1 -0.5">
        <joint name="lift" type="slide" axis="0 0.3 1" stiffness="30" springref="0.1" armature="0.02"/>
        <joint name="yaw" type="hinge" axis="0 0 1" pos="0.02 0 0" armature="0.01" ref="0.3"/>
        <joint name="pitch" type="hinge" axis="0 1 0.1" stiffness="0.8" springref="-0.4" damping="0.02"/>
        <inertial pos="0.05 0 0.1" mass="0.5" diaginertia="0.004 0.003 0.002"/>
      </body>
    </body>
    <body name="cart" pos="-1 0 0.5" quat="0.9 0 0.3 0.1">
      <joint name="rail" type="slide" axis="1 0.2 0" damping="0.3" armature="0.1"/>
      <inertial pos="0 0 0" mass="2" diaginertia="0.02 0.03 0.04"/>
      <body name="globe" pos="0 0 0.4">
        <joint name="globe" type="ball" damping="0.02" armature="0.003"/>
        <inertial pos="0 0.03 0.1" mass="0.6" diaginertia="0.003 0.004 0.005"/>
        <body name="fin" pos="0.2 0 0">
          <joint name="fin" type="hinge" axis="0 0 1"/>
          <inertial pos="0.1 0 0" mass="0.2" diaginertia="0.001 0.001 0.001"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="flap" joint="flap" gear="3" ctrlrange="-0.5 0.5" ctrllimited="true"/>
    <position name="lift" joint="lift" kp="40" kv="3" gear="2" forcerange="-1 1.5" forcelimited="true"/>
    <velocity name="yaw" joint="yaw" kv="0.5" gear="-1.5"/>
    <position name="pitch" joint="pitch" kp="5" ctrlrange="-0.3 0.6" ctrllimited="true"/>
    <general name="rail" joint="rail" gainprm="2" biastype="affine" biasprm="0.3 -1 -0.2"
             gear="1.5"/>
    <motor name="fin" jointinparent="fin" gear="0.2"/>
    <general name="flap servo" joint="flap" gaintype="affine" gainprm="0.4 -0.2 0.1" gear="0.7"/>
    <damper name="brake" joint="lift" kv="2" ctrlrange="0 1"/>
  </actuator>
</mujoco>
"""
"""Every joint type, several joints on one body, springs with references, every actuator, three trees."""
