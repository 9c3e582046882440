"""The robot files that the tests load, by package, with what each needs to be told.

Files are found through the metadata of the installed packages, which are not imported. A robot whose package
is missing is skipped. `python -m tests.real_robots.report` writes benchmarks/results/robots.md from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from revolute_engine import Model, load_model

FREE_OF_CONSTRAINTS = {"contact": False, "limits": False, "dry_friction": False}
"""Options that leave the smooth dynamics only."""

_ROOTS = {
    "dm-control": "dm_control",
    "example-robot-data": "cmeel.prefix/share/example-robot-data/robots",
    "gymnasium": "gymnasium/envs/mujoco/assets",
    "gymnasium-robotics": "gymnasium_robotics/envs/assets",
    "pybullet": "pybullet_data",
    "robosuite": "robosuite/models/assets",
    "robosuite-models": "robosuite_models/assets",
    "upkie-description": "upkie_description/urdf",
}
"""Folder of each package's robots below site-packages."""


@dataclass(frozen=True)
class Robot:
    """One robot file.

    Attributes:
        package: the distribution that ships the file.
        path: the file below the package's folder of robots.
        kind: arm, hand, quadruped, biped, humanoid, wheeled, drone or textbook.
        base: "free" where the file is a URDF of a robot that is not bolted down.
        timestep: seconds, where the file's step is too long for a robot without limits and friction.
    """

    package: str
    path: str
    kind: str
    base: str | None = None
    timestep: float | None = None

    @property
    def name(self) -> str:
        """What tables and test ids call the robot."""
        stem = self.path.removesuffix(".urdf").removesuffix(".xml")
        parts = [
            part for part in stem.split("/") if part not in ("robots", "urdf", "robot", "grippers", "suite")
        ]
        return f"{self.package}:{'/'.join(parts[-2:])}"

    @property
    def is_urdf(self) -> bool:
        """URDF, else MJCF."""
        return self.path.endswith(".urdf")

    @cached_property
    def file(self) -> Path | None:
        """The file, or None when the package is not installed."""
        try:
            distribution = metadata.distribution(self.package)
        except metadata.PackageNotFoundError:
            return None
        path = Path(str(distribution.locate_file(f"{_ROOTS[self.package]}/{self.path}")))
        return path if path.is_file() else None

    def load(self, **options: Any) -> Model:
        """Load the robot; options override the catalogue's."""
        return load_model(self.file or "", **{"base": self.base, "timestep": self.timestep, **options})


def _robots(package: str, kind: str, *paths: str, **settings: Any) -> list[Robot]:
    return [Robot(package, path, kind, **settings) for path in paths]


ROBOTS: list[Robot] = [
    *_robots("gymnasium", "quadruped", "ant.xml"),
    *_robots("gymnasium", "biped", "hopper.xml", "walker2d.xml", "walker2d_v5.xml", "half_cheetah.xml"),
    *_robots("gymnasium", "humanoid", "humanoid.xml", "humanoidstandup.xml"),
    *_robots("gymnasium", "arm", "pusher.xml", "pusher_v5.xml", "reacher.xml"),
    *_robots("gymnasium", "textbook", "inverted_pendulum.xml", "inverted_double_pendulum.xml", "swimmer.xml"),
    *_robots("gymnasium", "wheeled", "point.xml"),
    *_robots(
        "pybullet",
        "quadruped",
        *("laikago/laikago_toes_zup.urdf", "laikago/laikago_toes_zup_lores.urdf", "laikago/laikago.urdf"),
        *("a1/a1.urdf", "aliengo/aliengo.urdf", "mini_cheetah/mini_cheetah.urdf"),
        *("quadruped/minitaur.urdf", "quadruped/minitaur_v1.urdf", "quadruped/minitaur_fixed_knees.urdf"),
        *("quadruped/vision60.urdf", "quadruped/spirit40.urdf"),
        base="free",
    ),
    *_robots("pybullet", "humanoid", "mjcf/humanoid.xml"),
    *_robots("pybullet", "humanoid", "humanoid/humanoid.urdf", base="free"),
    *_robots("pybullet", "arm", "kuka_iiwa/model.urdf", "franka_panda/panda.urdf", "xarm/xarm6_robot.urdf"),
    *_robots("pybullet", "arm", "mjcf/thrower.xml", "mjcf/striker.xml"),
    *_robots("pybullet", "hand", "pr2_gripper.urdf"),
    *_robots("pybullet", "wheeled", "r2d2.urdf", "racecar/racecar.urdf", "husky/husky.urdf", base="free"),
    *_robots("pybullet", "textbook", "cartpole.urdf", "pendulum5.urdf", "differential/diff_ring.urdf"),
    *_robots(
        "dm-control",
        "humanoid",
        *("suite/humanoid.xml", "suite/humanoid_CMU.xml", "locomotion/walkers/assets/humanoid_CMU_V2020.xml"),
    ),
    *_robots("dm-control", "biped", "suite/walker.xml", "suite/hopper.xml", "suite/cheetah.xml"),
    *_robots("dm-control", "quadruped", "suite/quadruped.xml", "suite/dog.xml"),
    *_robots("dm-control", "wheeled", "locomotion/soccer/assets/boxhead/boxhead.xml"),
    *_robots("dm-control", "arm", "third_party/kinova/jaco_arm.xml", "suite/reacher.xml"),
    *_robots("dm-control", "hand", "third_party/kinova/jaco_hand.xml", "suite/manipulator.xml"),
    *_robots(
        "dm-control",
        "textbook",
        *(
            "suite/acrobot.xml",
            "suite/cartpole.xml",
            "suite/pendulum.xml",
            "suite/finger.xml",
            "suite/point_mass.xml",
        ),
    ),
    *_robots(
        "example-robot-data",
        "quadruped",
        *("a1_description/urdf/a1.urdf", "go1_description/urdf/go1.urdf", "go2_description/urdf/go2.urdf"),
        *("b1_description/urdf/b1.urdf", "laikago_description/urdf/laikago.urdf"),
        *("solo_description/robots/solo.urdf",),
        *("quadruped_description/urdf/quadruped.urdf", "hyq_description/robots/hyq_no_sensors.urdf"),
        *("anymal_b_simple_description/robots/anymal.urdf", "anymal_c_simple_description/urdf/anymal.urdf"),
        base="free",
    ),
    *_robots(
        "example-robot-data", "quadruped", "solo_description/robots/solo12.urdf", base="free", timestep=2e-4
    ),
    *_robots(
        "example-robot-data",
        "humanoid",
        *("talos_data/robots/talos_reduced.urdf", "talos_data/robots/talos_full_v2.urdf"),
        *("icub_description/robots/icub.urdf",),
        *("simple_humanoid_description/urdf/simple_humanoid_classical.urdf",),
        *(
            "alexander_description/urdf/alexander_v1.lowerBodyOnly.urdf",
            "alex_description/urdf/alex_sake_hands.urdf",
        ),
        base="free",
    ),
    *_robots(
        "example-robot-data",
        "humanoid",
        "g1_description/urdf/g1_29dof_rev_1_0.urdf",
        base="free",
        timestep=2e-4,
    ),
    *_robots(
        "example-robot-data",
        "humanoid",
        "romeo_description/urdf/romeo_small.urdf",
        base="free",
        timestep=2e-4,
    ),
    *_robots("example-robot-data", "biped", "bolt_description/robots/bolt.urdf", base="free"),
    *_robots(
        "example-robot-data",
        "arm",
        *("kinova_description/robots/kinova.urdf",),
        *("ur_description/urdf/ur3_robot.urdf", "ur_description/urdf/ur5_robot.urdf"),
        *("ur_description/urdf/ur10_robot.urdf", "ur_description/urdf/ur5_gripper.urdf"),
        *("xarm_description/urdf/xarm7.urdf", "z1_description/urdf/z1.urdf"),
        *("talos_data/robots/talos_left_arm.urdf", "baxter_description/urdf/baxter.urdf"),
    ),
    *_robots(
        "example-robot-data",
        "arm",
        *("so_arm_description/urdf/so100.urdf", "so_arm_description/urdf/so101.urdf"),
        *("panda_description/urdf/panda.urdf",),
        timestep=2e-4,
    ),
    *_robots(
        "example-robot-data",
        "hand",
        *("allegro_hand_description/urdf/allegro_right_hand.urdf",),
        *("finger_edu_description/robots/finger_edu.urdf",),
    ),
    *_robots(
        "example-robot-data",
        "wheeled",
        *("centauro_description/urdf/centauro.urdf", "tiago_description/robots/tiago.urdf"),
        *("tiago_pro_description/robots/tiago_pro.urdf", "pr2_description/urdf/pr2.urdf"),
        base="free",
    ),
    *_robots(
        "example-robot-data",
        "drone",
        *("iris_description/robots/iris.urdf", "iris_description/robots/iris_simple.urdf"),
        *(
            "hector_description/robots/quadrotor_base.urdf",
            "hextilt_description/urdf/hextilt_flying_arm_5.urdf",
        ),
        *("borinot_description/urdf/borinot_flying_arm_2.urdf",),
        base="free",
    ),
    *_robots(
        "example-robot-data",
        "textbook",
        *("asr_twodof_description/urdf/TwoDofs.urdf",),
        *("double_pendulum_description/urdf/double_pendulum.urdf",),
    ),
    *_robots("robosuite-models", "quadruped", "robots/go2/robot.xml", "robots/b1/robot.xml"),
    *_robots("robosuite-models", "humanoid", "robots/g1/robot.xml", "robots/h1/robot.xml"),
    *_robots(
        "robosuite-models",
        "arm",
        *(
            "robots/aloha/robot.xml",
            "robots/arx5/robot.xml",
            "robots/vx300s/robot.xml",
            "robots/yumi/robot.xml",
        ),
        *("robots/z1/robot.xml",),
    ),
    *_robots("robosuite-models", "wheeled", "robots/pr2/robot.xml"),
    *_robots(
        "robosuite-models",
        "hand",
        *("grippers/ability_left_hand.xml", "grippers/g1_three_finger_left_gripper.xml"),
        *("grippers/aloha_gripper.xml", "grippers/pr2_gripper.xml"),
    ),
    *_robots("robosuite-models", "hand", "grippers/schunk_svh_left_hand.xml", timestep=2e-4),
    *_robots("robosuite", "quadruped", "robots/spot/robot.xml"),
    *_robots("robosuite", "humanoid", "robots/gr1/robot.xml", timestep=2e-4),
    *_robots(
        "robosuite",
        "arm",
        *(
            "robots/panda/robot.xml",
            "robots/iiwa/robot.xml",
            "robots/ur5e/robot.xml",
            "robots/sawyer/robot.xml",
        ),
        *(
            "robots/kinova3/robot.xml",
            "robots/jaco/robot.xml",
            "robots/xarm7/robot.xml",
            "robots/baxter/robot.xml",
        ),
        *("robots/spot_arm/robot.xml",),
    ),
    *_robots(
        "robosuite",
        "hand",
        *(
            "grippers/fourier_left_hand.xml",
            "grippers/inspire_left_hand.xml",
            "grippers/robotiq_gripper_140.xml",
        ),
        *("grippers/jaco_three_finger_gripper.xml",),
    ),
    *_robots("robosuite", "wheeled", "robots/tiago/robot.xml", "bases/omron_mobile_base.xml"),
    *_robots("gymnasium-robotics", "hand", "hand/reach.xml", "adroit_hand/adroit_pen.xml"),
    *_robots("gymnasium-robotics", "arm", "fetch/reach.xml"),
    *_robots("upkie-description", "wheeled", "upkie.urdf", base="free"),
]
"""Every robot that is tried, those that do not load included."""


def installed() -> list[Robot]:
    """Return the robots whose package is installed."""
    return [robot for robot in ROBOTS if robot.file is not None]
