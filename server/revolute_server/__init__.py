"""The gRPC and HTTP server of revolute.

`cli` is the command line, `app` the process, `verbs` what every transport calls: gRPC (`grpc`), HTTP (`http`)
and the engine in the caller's own process (`in_process`). `domain` holds models, sessions and trajectories.
"""
