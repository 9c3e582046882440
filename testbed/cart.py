"""The smallest model with a known answer: a cart on a rail."""

CART = """<mujoco model="cart">
  <option timestep="0.001" gravity="0 0 0"/>
  <worldbody>
    <body name="cart">
      <joint name="x" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="x"/></actuator>
</mujoco>
"""
"""A mass of 1 kg on a rail, pushed by its control: v_N = h sum u, x_N = h sum v."""
