"""How arrays, models, losses and errors are written on the wire; shared by client and server.

tensor: one array as bytes with dtype and shape, checked strictly.
parts: a gRPC message and its large arrays as a stream of small parts, and back.
documents: messages from plain documents, and back.
npz: the same message as one NPZ file, for HTTP.
json_text: the same message as strict JSON, for HTTP.
status: an exception as the bytes of google.rpc.Status, and back.
"""
