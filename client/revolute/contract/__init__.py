"""What client, engine and server agree on: values, errors, arrays, and the wire's messages.

The engine and the server import nothing else of this package.
"""
