"""The gRPC and HTTP server of revolute.

`revolute_server.cli` is the command line, `revolute_server.app` the process, `revolute_server.service` the
verbs that both transports call.
"""
