"""One session with a language server, in the sandbox: the files are in folder ``work``, and what is asked in a file.

The server is started, told of every file, waited for until it has said what it finds in each, and asked in order. Plain
standard library, as this file is a program of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

UNUSED = ("autopep8", "black", "flake8", "mccabe", "preload", "pycodestyle", "pydocstyle", "pylint", "yapf")
"""Plugins of python-lsp-server that say nothing of errors, names and places."""


def write(pipe: IO[bytes], message: dict[str, Any]) -> None:
    """Put a message with the header of the protocol."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    pipe.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    pipe.flush()


def read(pipe: IO[bytes]) -> dict[str, Any]:
    """Take the next message.

    Raises:
        EOFError: the server has ended.
    """
    length = 0
    while (line := pipe.readline().strip()) or not length:
        if not line and not pipe.peek(1):  # type: ignore[attr-defined]
            raise EOFError("the language server has ended")
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    found: dict[str, Any] = json.loads(pipe.read(length))
    return found


def session(command: list[str], asked: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Return what the server finds in each file, and its answers: ``result`` or ``error`` for each question."""
    root = Path("work").absolute()
    server = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None and server.stdout is not None
    to, back = server.stdin, server.stdout
    findings: dict[str, Any] = {}
    sent = 0

    def answer(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        nonlocal sent
        sent += 1
        write(to, {"id": sent, "method": method, "params": parameters})
        while True:
            message = read(back)
            if message.get("id") == sent and "method" not in message:
                return message
            noted(message)

    def noted(message: dict[str, Any]) -> None:
        if message.get("method") == "textDocument/publishDiagnostics":
            findings[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif "id" in message and "method" in message:  # what the server asks of its client
            write(to, {"id": message["id"], "result": None})

    capable: dict[str, Any] = {"textDocument": {"publishDiagnostics": {}, "rename": {}}}
    options = {"pylsp": {"plugins": {name: {"enabled": False} for name in UNUSED}}}
    begun = {"processId": None, "rootUri": root.as_uri(), "capabilities": capable, "initializationOptions": options}
    answer("initialize", begun)
    write(to, {"method": "initialized", "params": {}})
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*.py"))
    for name in names:
        told = {"uri": (root / name).as_uri(), "languageId": "python", "version": 1}
        text = (root / name).read_text(encoding="utf-8")
        write(to, {"method": "textDocument/didOpen", "params": {"textDocument": {**told, "text": text}}})
    while len(findings) < len(names):
        noted(read(back))
    answers = []
    for method, parameters in asked:
        path = parameters.pop("path", None)
        document = {} if path is None else {"textDocument": {"uri": (root / path).as_uri()}}
        found = answer(method, {**parameters, **document})
        answers.append({key: found[key] for key in ("result", "error") if key in found})
    answer("shutdown", {})
    write(to, {"method": "exit"})
    server.wait()
    return {"root": root.as_uri() + "/", "findings": findings, "answers": answers}


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(json.dumps(session(asked["command"], asked["asked"])))
