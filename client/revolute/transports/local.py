"""The in-process transport: the same verbs and documents, answered by revolute_engine in this process."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
import revolute_engine
from revolute_server import answers, stepping

from ..errors import CancelledError, NotFoundError
from ..loss import Loss
