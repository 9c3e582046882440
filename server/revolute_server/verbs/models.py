"""The verbs of ModelService."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WithJsonSchema, create_model

from revolute.contract.errors import LimitError
from revolute.contract.load_options import OPTIONS

from .. import answers
from ..answers import Document
from ..domain.models import Source
from ..settings import format_bytes
from .base import ServiceVerbs
from .body import REQUEST_ID, Body, Deletion, Listing, takes

Asset = Annotated[bytes, WithJsonSchema({"type": "string", "contentEncoding": "base64"})]


if TYPE_CHECKING:
    ModelOptions = Body
else:
    ModelOptions = create_model(
        "ModelOptions",
        __base__=Body,
        __doc__="Options of a model; a field that is not set takes the default.",
        __module__=__name__,
        **{name: (option.kind | None, None) for name, option in OPTIONS.items()},
    )


class ModelSource(Body):
    """A model to register: the text of a URDF or MJCF file, or the name of a built-in model."""

    example = {"builtin": "cartpole", "options": {"timestep": 0.005}}

    builtin: str = ""
    text: str = ""
    assets: dict[str, Asset] = {}
    options: ModelOptions = ModelOptions()
    name: str = ""
    request_id: str = REQUEST_ID


class ModelVerbs(ServiceVerbs):
    """Registers, describes, lists and deletes models."""

    @takes(ModelSource)
    async def register_model(self, body: ModelSource) -> Document:
        self._check_files(body)
        options = body.options.model_dump(exclude_none=True)
        source = Source(body.text, body.builtin, body.name, body.assets, options)
        return await self._once(
            body.request_id,
            "RegisterModel",
            vars(source),
            lambda ticket: self.service.models.register(source, ticket),
            answers.model_info,
            record=lambda model: {"model_id": model.id},
            replay=lambda known: self.get_model(known["model_id"]),
        )

    async def get_model(self, model_id: str) -> Document:
        return answers.model_info(await self.service.models.get(model_id))

    async def get_model_files(self, model_id: str) -> Document:
        return answers.model_files(await self.service.models.files(model_id))

    @takes(Listing)
    async def list_models(self, body: Listing) -> Document:
        models = self.service.models
        return answers.model_list(models.builtins(), await models.page(body.page_size, body.page_token))

    @takes(Deletion)
    async def delete_model(self, model_id: str, body: Deletion) -> Document:
        return await self._delete("DeleteModel", model_id, body, self.service.models.delete)

    def _check_files(self, body: ModelSource) -> None:
        """Refuse files that are too large, before they are compiled."""
        settings = self.service.settings
        files: list[tuple[str, Any, str]] = [("text", len(body.text), "max_model")]
        for name, content in body.assets.items():
            included = name.lower().endswith((".xml", ".mjcf", ".urdf"))
            files.append((f"assets.{name[:80]}", len(content), "max_model" if included else "max_mesh"))
        for name, size, setting in files:
            limit = getattr(settings, setting)
            if size > limit:
                raise LimitError.expected(
                    name,
                    f"at most {format_bytes(limit)}",
                    format_bytes(size),
                    advice=f"send less, or start the server with more than {settings.flag(setting)}",
                )
