"""The verbs of the protocol, shared by all transports: each takes a document and returns a document.

A document is the content of a message on any transport: a dict by the field names of the proto files, with
arrays as NumPy arrays or nested lists. Transports only convert messages and bodies to documents and back.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from revolute.contract.verbs import VERBS, Verb

from ..answers import Document
from ..domain.service import Service
from .body import Body
from .models import ModelVerbs
from .server import ServerVerbs
from .sessions import SessionVerbs
from .trajectories import TrajectoryVerbs

__all__ = ["Body", "Document", "Verbs", "body_of", "method_name"]

Undo = Callable[[Document], None]


class Verbs(ModelVerbs, SessionVerbs, TrajectoryVerbs, ServerVerbs):
    """All verbs: each checks the fields of the request, calls the service, and builds the answer.

    Args:
        service: models, sessions and trajectories.
        with_ctrl: whether the answer of Rollout includes the controls.
    """

    def __init__(self, service: Service, *, with_ctrl: bool = False) -> None:
        super().__init__(service, with_ctrl=with_ctrl)
        methods = {verb.name: getattr(self, method_name(verb)) for verb in VERBS.values()}
        self._methods = {name: (method, hasattr(method, "body")) for name, method in methods.items()}

    def call(self, verb: Verb, request: dict[str, Any]) -> Coroutine[Any, Any, Document]:
        """Carry out a verb with one answer.

        Args:
            verb: the verb.
            request: its fields by the names of the protocol, ids included.
        """
        answer: Coroutine[Any, Any, Document] = self._called(verb, request)
        return answer

    def stream(self, verb: Verb, request: dict[str, Any]) -> AsyncGenerator[Document, None]:
        """Carry out a verb with many answers."""
        answers: AsyncGenerator[Document, None] = self._called(verb, request)
        return answers

    def undo(self, verb: Verb) -> Undo | None:
        """Return the function that undoes a verb if the client does not get the answer, or None."""
        return self.undo_rollout if verb.name in ("Rollout", "StreamRollout") else None

    def _called(self, verb: Verb, request: dict[str, Any]) -> Any:
        method, has_body = self._methods[verb.name]
        identifier = (request.pop(verb.id_field, ""),) if verb.id_field else ()
        return method(*identifier, request) if has_body else method(*identifier)


def method_name(verb: Verb) -> str:
    """Return the name of a verb's method: the verb in snake case."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", verb.name).lower()


def body_of(verb: Verb) -> type[Body] | None:
    """Return the body class of a verb; None if it takes only an id."""
    body: type[Body] | None = getattr(getattr(Verbs, method_name(verb)), "body", None)
    return body
