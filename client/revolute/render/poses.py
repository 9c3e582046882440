"""What determines where the bodies of a model are: joints, and the poses of mocap bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses of a model; the leading axes are the same in all arrays.

    Attributes:
        qpos: configurations, [..., nq].
        mocap_pos: positions of the mocap bodies, [..., nmocap, 3].
        mocap_quat: their quaternions as given, [..., nmocap, 4]; MuJoCo normalises them when it reads them.
    """

    qpos: npt.NDArray[np.float64]
    mocap_pos: npt.NDArray[np.float64]
    mocap_quat: npt.NDArray[np.float64]

    @classmethod
    def of(cls, model: mujoco.MjModel, qpos: Any, mocap_pos: Any = None, mocap_quat: Any = None) -> Poses:
        """Return poses; mocap bodies without a position or quaternion have that of the file.

        Args:
            model: the model.
            qpos: configurations, [..., nq].
            mocap_pos: as the attribute; None for the file's.
            mocap_quat: as the attribute; None for the file's.
        """
        qpos = np.asarray(qpos)
        axes, mocap = qpos.shape[:-1], np.flatnonzero(model.body_mocapid >= 0)
        pos = model.body_pos[mocap] if mocap_pos is None else mocap_pos
        quat = model.body_quat[mocap] if mocap_quat is None else mocap_quat
        return cls(
            qpos, np.broadcast_to(pos, (*axes, len(mocap), 3)), np.broadcast_to(quat, (*axes, len(mocap), 4))
        )

    def __len__(self) -> int:
        return len(self.qpos)

    def __getitem__(self, rows: Any) -> Poses:
        return Poses(self.qpos[rows], self.mocap_pos[rows], self.mocap_quat[rows])

    def put_into(self, data: mujoco.MjData) -> None:
        """Set the pose of MuJoCo's data, without leading axes; it computes no places of bodies."""
        data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = self.qpos, self.mocap_pos, self.mocap_quat
