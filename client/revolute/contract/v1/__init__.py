"""Generated messages and stubs of the v1 API, made by proto/revolute/v1/generate.sh; never edited."""
