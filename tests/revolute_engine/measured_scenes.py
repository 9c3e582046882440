"""Scenes for what is measured: every kind of joint, frame and sensor."""

BODIES = """
  <geom name="floor" type="plane" size="5 5 .1" contype="2" conaffinity="1"/>
  <site name="world" pos=".1 .2 .3" quat="1 .4 .2 .1"/>
  <camera name="eye" pos="1 -2 1" xyaxes="1 .3 0 -.1 .3 1" resolution="64 48"/>
  <body name="a" pos="0 0 .25"><freejoint name="float"/>
    <geom name="ga" size=".1 .2 .3" type="box" quat="1 .2 .3 .1"/>
    <site name="sa" pos=".1 .0 -.1" quat="1 1 0 .3" type="sphere" size="0.4"/>
    <site name="box" type="box" size=".3 .3 .3"/><site name="cylinder" type="cylinder" size=".3 .3"/>
    <site name="capsule" type="capsule" size=".1 .3"/>
    <site name="ellipsoid" type="ellipsoid" size=".3 .4 .3"/>
    <site name="away" type="box" pos="0 0 2" size=".1 .1 .1"/>
    <body name="b" pos=".3 0 0" quat="1 .2 0 .1">
      <joint name="h" axis="1 2 3" range="-20 20" limited="true"/>
      <joint name="s" type="slide" axis="0 1 1"/><geom size=".1" pos=".1 0 0" condim="6"/>
      <body name="w" pos=".1 .1 0" quat="-1 .3 .2 0">
        <geom type="capsule" size=".05 .1" quat="0 1 1 0"/><site name="sw" quat="-1 .2 .2 .1"/>
        <body name="c" pos="0 .2 .1"><joint name="ball" type="ball" range="0 30" limited="true"/>
          <geom size=".1 .1 .05" type="ellipsoid"/><site name="sc" pos=".1 .1 0"/></body></body></body></body>
  <body name="arm" pos="2 0 .04"><joint name="t" type="hinge" axis="0 1 0" damping=".3" frictionloss=".1"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .5 0 0" condim="4"/>
    <site name="tip" pos=".5 0 0"/></body>"""

SENSORS = """
  <clock/><jointpos joint="h"/><jointvel joint="s"/><ballquat joint="ball"/><ballangvel joint="ball"/>
  <actuatorpos actuator="pt"/><actuatorvel actuator="mh"/><actuatorfrc actuator="pt"/>
  <jointactuatorfrc joint="t"/><jointlimitpos joint="h"/><jointlimitvel joint="h"/><jointlimitfrc joint="h"/>
  <jointlimitpos joint="ball"/><jointlimitvel joint="ball"/><jointlimitfrc joint="ball"/>
  <framepos objtype="site" objname="sw"/><framepos objtype="body" objname="b" reftype="site" refname="sa"/>
  <framequat objtype="geom" objname="ga"/><framequat objtype="body" objname="c" reftype="xbody" refname="a"/>
  <framexaxis objtype="site" objname="sw"/>
  <frameyaxis objtype="site" objname="sw" reftype="body" refname="c"/>
  <framezaxis objtype="xbody" objname="w" reftype="geom" refname="ga"/>
  <framelinvel objtype="site" objname="sw"/><frameangvel objtype="site" objname="sw"/>
  <framelinvel objtype="body" objname="c" reftype="site" refname="sa"/>
  <frameangvel objtype="body" objname="c" reftype="site" refname="sa"/>
  <velocimeter site="sw"/><gyro name="imu" site="sc" cutoff="1.5"/><magnetometer site="sa"/>
  <subtreecom body="a"/><subtreelinvel body="b"/><subtreeangmom body="a"/>
  <subtreecom body="world"/><subtreeangmom body="world"/>
  <framelinacc objtype="site" objname="sw"/><frameangacc objtype="body" objname="c"/>
  <framelinacc objtype="body" objname="w"/><accelerometer site="sw"/><accelerometer site="world"/>
  <force site="sc"/><torque site="sc"/><force site="sw"/><torque site="sw"/><force site="sa"/>
  <force site="tip"/><torque site="tip"/>
  <touch site="sa"/><touch site="box"/><touch site="cylinder"/><touch site="capsule"/>
  <touch site="ellipsoid"/><touch site="away"/><touch name="toe" site="tip"/>"""

SHAPES = """
  <rangefinder name="beam" site="tip" data="dist point normal"/><rangefinder site="sc"/>
  <distance geom1="floor" body2="arm" cutoff="5"/><fromto name="nearest" body1="b" geom2="floor" cutoff="5"/>
  <contact name="ground" subtree1="a" data="found force torque pos" reduce="netforce"/>
  <contact geom1="floor" data="found force dist pos linvel" num="4"/><e_potential/><e_kinetic/>
  <insidesite site="sa" objtype="site" objname="sw"/><camprojection site="sw" camera="eye"/>"""
"""Sensors of shapes and contacts, energies, and a camera's image."""

ACTUATORS = """<actuator><motor name="mh" joint="h" gear="2"/><position name="pt" joint="t" kp="3" kv="0.2"/>
  <motor joint="s" ctrlrange="-.5 .5"/></actuator>"""


def scene(sensors: str = SENSORS, *, cone: str = "pyramidal", equality: str = "") -> str:
    """Return the text of a model with these sensors."""
    return f"""<mujoco><default><geom contype="1" conaffinity="2"/></default>
      <option timestep="0.002" cone="{cone}" magnetic=".1 .2 -.5"/><worldbody>{BODIES}</worldbody>
      <equality>{equality}</equality>{ACTUATORS}<sensor>{sensors}</sensor></mujoco>"""
