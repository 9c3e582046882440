"""Generated messages and stubs of the v1 API; made from proto/revolute/v1 by its generate.sh, never edited."""
