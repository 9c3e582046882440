"""The OpenAPI description at /openapi.json and the page at /docs, which loads nothing from other hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastapi_offline
from fastapi import FastAPI, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from fastapi.staticfiles import StaticFiles
from pydantic.json_schema import models_json_schema

from . import schemas
from .http_bodies import JSON, NPZ
from .http_problems import PROBLEM

_ASSETS = Path(fastapi_offline.__file__).parent / "static"
_REFERENCE = "#/components/schemas/{model}"
_PROBLEM_SCHEMA = {
    "type": "object",
    "description": "RFC 9457 problem; `reason` is one of the protocol's error reasons.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "reason": {"type": "string"},
        "argument": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail", "reason"],
}


def reads(kind: type[schemas.Body]) -> dict[str, Any]:
    """Describe a route's body, which the route reads by itself because it may be JSON or npz."""
    reference = {"$ref": _REFERENCE.format(model=kind.__name__)}
    archive = {"type": "string", "format": "binary"}
    return {
        "requestBody": {"required": True, "content": {JSON: {"schema": reference}, NPZ: {"schema": archive}}},
    }


def install(app: FastAPI) -> None:
    """Serve /docs and a description that has the bodies and the problem document."""
    app.mount("/docs/assets", StaticFiles(directory=_ASSETS), name="docs-assets")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return get_swagger_ui_html(
            openapi_url="/openapi.json",
            title="revolute",
            swagger_js_url="/docs/assets/swagger-ui-bundle.js",
            swagger_css_url="/docs/assets/swagger-ui.css",
            swagger_favicon_url="/docs/assets/favicon.png",
        )

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _describe(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _describe(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    _, bodies = models_json_schema(
        [(kind, "validation") for kind in schemas.REQUESTS], ref_template=_REFERENCE
    )
    document["components"] = {"schemas": {**bodies["$defs"], "Problem": _PROBLEM_SCHEMA}}
    problem = {
        "description": "Problem",
        "content": {PROBLEM: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}},
    }
    for path, methods in document["paths"].items():
        for operation in methods.values():
            operation["responses"].pop("422", None)
            if path.startswith("/v1"):
                operation["responses"]["default"] = problem
                for status, answer in operation["responses"].items():
                    if status.startswith("2"):
                        answer["content"] = {
                            JSON: {},
                            NPZ: {"schema": {"type": "string", "format": "binary"}},
                        }
    return document
