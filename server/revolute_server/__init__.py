"""The gRPC and HTTP server of revolute.

`cli` is the command line and `app` the server process. The transports are gRPC (`grpc`), HTTP (`http`) and
calls in the same process (`in_process`); all of them call `verbs`. `domain` has models, sessions and
trajectories.
"""
