"""The HTTP transport, with the admin page and the OpenAPI description."""
