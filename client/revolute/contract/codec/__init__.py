"""Encoding of arrays, messages and errors on the wire; used by client and server.

tensor: one array as bytes with dtype and shape, checked strictly.
parts: a gRPC message with large arrays as a stream of small parts.
documents: conversion between plain documents and protobuf messages.
npz: a message as one NPZ file, for HTTP.
json_text: a message as strict JSON, for HTTP.
status: an exception as the bytes of google.rpc.Status.
buffers, heap, shared_memory: faster memory for large arrays.
"""
