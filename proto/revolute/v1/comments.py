"""Writes the comments of the proto files as JSON, from which the server describes its HTTP interface.

Usage: comments.py DESCRIPTORS OUTPUT, with what `protoc --include_source_info --descriptor_set_out` wrote.
The keys are "Message", "Message.field" and "Service.Rpc".
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

MESSAGE, SERVICE, INNER = 4, 6, 2
"""Numbers of the fields that lead to a message or a service in a file, and to a field or an rpc in that."""


def comments(file: FileDescriptorProto) -> dict[str, str]:
    """Return the comments of a file's messages, fields and rpcs."""
    found = {}
    for location in file.source_code_info.location:
        text = " ".join(location.leading_comments.split())
        match list(location.path):
            case [kind, outer] if kind == MESSAGE:
                found[file.message_type[outer].name] = text
            case [kind, outer, inner, number] if (kind, inner) == (MESSAGE, INNER):
                message = file.message_type[outer]
                found[f"{message.name}.{message.field[number].name}"] = text
            case [kind, outer, inner, number] if (kind, inner) == (SERVICE, INNER):
                service = file.service[outer]
                found[f"{service.name}.{service.method[number].name}"] = text
    return found


def main(descriptors: str, output: str) -> None:
    """Write the comments of all files."""
    files = FileDescriptorSet.FromString(Path(descriptors).read_bytes()).file
    found = {key: text for file in files for key, text in comments(file).items()}
    text = json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False)
    Path(output).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
