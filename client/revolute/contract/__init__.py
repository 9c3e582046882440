"""Code shared by client, engine and server: errors, arrays, checkpoints, losses, and the protocol's messages.

Of the package `revolute`, engine and server import only this subpackage.
"""
