"""Models with tendons, actuators on other things than hinges, activations, and forces on links."""

from __future__ import annotations

BODIES = """
  <body name="base" pos="0 0 1"><freejoint name="root"/><geom size="0.1" mass="2"/>
    <site name="hip" pos="0.1 0.05 0"/>
    <body name="arm" pos="0.2 0 0"><joint name="shoulder" axis="0 1 0.2" damping="0.3"/>
      <geom name="bone" type="capsule" fromto="0 0 0 0.3 0 0.05" size="0.03" mass="0.6"/>
      <site name="elbow" pos="0.25 0.02 0.04" quat="0.9 0.1 0.3 0.2"/>
      <geom name="ball" type="sphere" pos="0.15 0 0.12" size="0.06" mass="0.1"/>
      <geom name="rod" type="cylinder" pos="0.25 0 0.03" euler="80 10 0" size="0.08 0.2" mass="0.1"/>
      <site name="above" pos="0.15 0.05 0.3"/><site name="inside" pos="0.16 0.01 0.12"/>
      <body name="hand" pos="0.35 0 0.05"><joint name="wrist" axis="0.3 1 0" stiffness="2"/>
        <geom type="capsule" fromto="0 0 0 0.15 0.05 0" size="0.02" mass="0.3"/>
        <site name="tip" pos="0.12 0.01 0.02"/>
        <body name="knob" pos="0.2 0 0"><joint name="knob" type="ball" damping="0.05"/>
          <geom type="ellipsoid" size="0.05 0.03 0.02" pos="0.03 0.01 0" mass="0.2"/>
          <site name="rim" pos="0.03 0.02 0.02"/>
        </body></body></body>
    <body name="leg" pos="-0.1 0.1 -0.1"><joint name="knee" axis="1 0 0.1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" mass="0.5"/>
      <site name="heel" pos="0.02 0 -0.25"/>
      <body name="foot" pos="0 0 -0.3"><joint name="slide" type="slide" axis="0 0.3 1"/>
        <geom size="0.04" mass="0.2"/>
        <site name="toe" pos="0.05 0.03 -0.02" euler="20 30 40"/></body></body>
  </body>
"""

FIXED = """<fixed name="fixed" {attributes}><joint joint="shoulder" coef="0.7"/>
  <joint joint="wrist" coef="-1.2"/><joint joint="knee" coef="0.5"/></fixed>"""
PATHS = {
    "straight": '<site site="hip"/><site site="elbow"/><site site="toe"/>',
    "pulley": '<site site="hip"/><site site="tip"/><pulley divisor="2"/><site site="heel"/><site site="tip"/>'
    '<pulley divisor="3"/><site site="toe"/><site site="elbow"/>',
    "sphere": '<site site="hip"/><geom geom="ball"/><site site="tip"/>',
    "beside a sphere": '<site site="hip"/><geom geom="ball" sidesite="above"/><site site="tip"/>',
    "inside a sphere": '<site site="hip"/><geom geom="ball" sidesite="inside"/><site site="tip"/>',
    "cylinder": '<site site="hip"/><geom geom="rod"/><site site="rim"/><site site="heel"/>',
}
SPRING = 'stiffness="40" damping="0.2" springlength="0.05 0.2"'


def spatial(name: str, attributes: str) -> str:
    """Return the element of a path's tendon, whose name is "path"."""
    return f'<spatial name="path" {attributes}>{PATHS[name]}</spatial>'


def model(
    *,
    tendons: str = "",
    actuators: str = "",
    after: str = "",
    integrator: str = "Euler",
    option: str = "",
    bodies: str = BODIES,
) -> str:
    """Return the text of a model; nothing touches anything else."""
    return (
        f'<mujoco><option timestep="0.004" integrator="{integrator}" {option}>'
        '<flag contact="disable"/></option><compiler autolimits="true"/>'
        f"<worldbody>{bodies}<site name='post' pos='0.5 -0.4 1.2' euler='30 0 60'/></worldbody>"
        f"<tendon>{tendons}</tendon><actuator>{actuators}</actuator>{after}</mujoco>"
    )


def _tendon_cases() -> dict[str, str]:
    cases = {"fixed": FIXED.format(attributes=SPRING)}
    cases |= {name: spatial(name, SPRING) for name in PATHS}
    return cases


_PULLS = (
    '<position name="servo" tendon="{0}" kp="30" kv="0.1" gear="1.4"/>'
    '<motor name="pull" tendon="{0}" gear="3"/>'
)
_DRIVES = {
    "ball": '<position joint="knob" kp="0.5" kv="0.002" gear="0.4 0.8 -0.3"/>',
    "ball in its parent": '<position jointinparent="knob" kp="0.5" kv="0.002" gear="0.4 0.8 -0.3"/>',
    "free": '<motor joint="root" gear="0.4 0.8 -0.3 0.2 0.5 0.6"/>',
    "free in the world": '<motor jointinparent="root" gear="0.4 0.8 -0.3 0.2 0.5 0.6"/>',
    "site": '<motor site="tip" gear="0.4 0.8 -0.3 0.02 0.05 0.06"/>',
    "site and reference": '<position site="tip" refsite="toe" kp="9" kv="1" '
    'gear="0.4 0.8 -0.3 0.1 0.2 0.3"/>',
    "site and fixed reference": '<position site="rim" refsite="post" kp="2" kv="0.02" '
    'gear="1 0.5 0 0 0.2 0.3"/>',
    "slider-crank": '<position cranksite="tip" slidersite="heel" cranklength="0.9" '
    'kp="20" kv="2" gear="1.3"/>',
    "limits on sums": _PULLS.format("fixed") + '<velocity joint="wrist" kv="0.8"/><motor joint="wrist"/>',
}
_LIMITED = BODIES.replace('name="wrist"', 'name="wrist" actuatorfrcrange="-0.5 0.4"')
_GRAVCOMP = BODIES.replace('name="arm"', 'name="arm" gravcomp="0.7"').replace(
    'name="hand"', 'name="hand" gravcomp="1.2"'
)

SMOOTH = {
    **{
        name: {"tendons": tendon, "actuators": _PULLS.format("fixed" if name == "fixed" else "path")}
        for name, tendon in _tendon_cases().items()
    },
    **{name: {"actuators": text} for name, text in _DRIVES.items() if name != "limits on sums"},
    "limits on sums": {
        "tendons": FIXED.format(attributes='actuatorfrcrange="-6 5"'),
        "actuators": _DRIVES["limits on sums"],
        "bodies": _LIMITED,
    },
    "gravity compensation": {"bodies": _GRAVCOMP},
    "gravity compensation by actuators": {
        "bodies": _GRAVCOMP.replace(
            'name="shoulder"', 'name="shoulder" actuatorgravcomp="true" actuatorfrcrange="-2 9"'
        ).replace('name="wrist"', 'name="wrist" actuatorgravcomp="true" actuatorfrcrange="-0.2 0.2"'),
        "actuators": '<motor joint="shoulder"/><motor joint="wrist"/>',
    },
    "medium": {"option": 'density="800" viscosity="0.9" wind="0.3 -0.2 0.1"'},
    "ellipsoids in a medium": {
        "option": 'density="300" viscosity="0.9" wind="0.3 -0.2 0.1"',
        "bodies": BODIES.replace('name="bone"', 'name="bone" fluidshape="ellipsoid"')
        .replace('name="rod"', 'name="rod" fluidshape="ellipsoid" fluidcoef="0.4 0.3 1.2 0.8 0.7"')
        .replace('type="ellipsoid"', 'type="ellipsoid" fluidshape="ellipsoid"')
        .replace('size="0.04" mass="0.2"', 'size="0.04" mass="0.2" fluidshape="ellipsoid"'),
    },
}
"""Arguments of `model` by name: forces without constraints."""

INERTIA = {
    "armature of a tendon": {
        "tendons": FIXED.format(attributes='armature="0.3" stiffness="40"'),
        "actuators": '<velocity tendon="fixed" kv="0.5"/>',
    },
}
"""The same, what contact_model="hard" does not have."""

LIMITED = 'range="0.25 0.3" margin="0.01" limited="true"'
ROWS = {
    "limit of a fixed tendon": {"tendons": FIXED.format(attributes='range="-0.1 0.1" limited="true"')},
    "limit of a path": {"tendons": spatial("cylinder", LIMITED)},
    "friction of tendons": {
        "tendons": FIXED.format(attributes='frictionloss="0.4"') + spatial("sphere", 'frictionloss="2"')
    },
    "equality of one tendon": {
        "tendons": spatial("pulley", ""),
        "after": '<equality><tendon tendon1="path" polycoef="0.1"/></equality>',
    },
    "equality of two tendons": {
        "tendons": FIXED.format(attributes="") + spatial("sphere", ""),
        "after": '<equality><tendon tendon1="path" tendon2="fixed" '
        'polycoef="0.02 0.6 0.3 -0.2 0.1"/></equality>',
    },
}
"""Arguments of `model` by name: constraints."""

ACTIVATED = {
    "integrator": {"actuators": '<intvelocity joint="knee" kp="3" kv="0.1" actrange="-0.2 0.3"/>'},
    "filter": {
        "actuators": '<general joint="knee" dyntype="filter" dynprm="0.03" gainprm="2"/>'
        '<general joint="wrist" dyntype="filter" dynprm="0.02" gaintype="affine" '
        'gainprm="1 0.2 -0.1" ctrlrange="-0.5 0.5"/>'
    },
    "filterexact": {
        "actuators": '<general joint="knee" dyntype="filterexact" dynprm="0.03" '
        'gainprm="2" actrange="-0.4 0.4"/>'
    },
    "early": {
        "actuators": '<general joint="knee" dyntype="filterexact" dynprm="0.03" gainprm="2" actearly="true"/>'
        '<general joint="wrist" dyntype="integrator" gainprm="2" actearly="true" '
        'actrange="-1 1" actlimited="true"/>'
    },
    "muscle": {
        "tendons": spatial("cylinder", ""),
        "actuators": '<muscle tendon="path" lengthrange="0.2 1.5" force="30" ctrlrange="0 1"/>'
        '<muscle joint="knee" lengthrange="-1 1" tausmooth="0.3" timeconst="0.02 0.05" scale="9"/>',
    },
}
"""Arguments of `model` by name: actuators with activation."""
