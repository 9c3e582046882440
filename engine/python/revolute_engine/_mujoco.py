"""Imports MuJoCo's bindings and collects their warnings.

On import, the bindings load the renderer that MUJOCO_GL names, and fail if it is missing. The engine does not
render, so this module then imports the bindings without a renderer.

By default, MuJoCo writes warnings to MUJOCO_LOG.TXT in the working directory, or issues Python warnings at
the calling line. `collected_warnings` collects both, so that they can be attached to the loaded model.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["collected_warnings", "mujoco"]

_RENDERER = "MUJOCO_GL"
_PACKAGE = __package__ or ""
_FOLDER = os.path.dirname(__file__)

# warning handlers are global to the process
_HANDLERS = threading.Lock()


def _import_without_renderer(error: Exception) -> Any:
    """Import the bindings without a renderer, after an import with one failed."""
    asked = os.environ[_RENDERER]
    os.environ[_RENDERER] = "disabled"
    try:
        import mujoco
    finally:
        os.environ[_RENDERER] = asked
    warnings.warn(f"{_RENDERER}='{asked}': MuJoCo cannot draw in this process: {error}", stacklevel=2)
    return mujoco


try:
    import mujoco
except ImportError:
    raise
except Exception as error:
    if not os.environ.get(_RENDERER):
        raise
    mujoco = _import_without_renderer(error)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect MuJoCo's warnings from this thread. Other threads that collect warnings wait.

    Yields:
        The list of texts; it grows as warnings are issued.
    """
    texts: list[str] = []
    owner = threading.get_ident()
    with _HANDLERS:
        handler, show = mujoco.get_mju_user_warning(), warnings.showwarning

        def collect(text: str) -> None:
            if threading.get_ident() == owner:
                texts.append(text.strip())
            elif handler is not None:
                handler(text)
            else:
                mujoco.mju_writeLog("WARNING", text)

        def collect_python(message: Any, category: Any, filename: str, *rest: Any, **named: Any) -> None:
            if threading.get_ident() == owner and os.path.dirname(filename) == _FOLDER:
                texts.append(str(message).strip())
            else:
                show(message, category, filename, *rest, **named)

        # not catch_warnings: it would reset Python's record of warnings already shown
        always: Any = ("always", None, UserWarning, re.compile(re.escape(_PACKAGE) + r"\."), 0)
        filters: Any = warnings.filters
        filters.insert(0, always)
        mujoco.set_mju_user_warning(collect)
        warnings.showwarning = collect_python
        try:
            yield texts
        finally:
            warnings.showwarning = show
            mujoco.set_mju_user_warning(handler)
            filters.remove(always)
