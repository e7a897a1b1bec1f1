"""An interpreter that is asked again and again: runs each source it is sent in the same namespace, and says what came.

It is the program of a session, and shares its process with what it is sent: what it answers is what that source, or one
before it, says of itself.
"""

import ast
import json
import linecache
import os
import sys
import time
import traceback
import types

LONGEST = 100_000
"""Characters of a value that are shown."""


def serve() -> None:
    # The conversation gets descriptors of its own; a source that reads its input finds none.
    asked, answers = os.fdopen(os.dup(0), "rb"), os.dup(3)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.close(3)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    for line in asked:
        number, source = json.loads(line)
        start = time.process_time()
        answer = run(source, module.__dict__, f"<run {number}>")
        answer |= {"number": number, "seconds": time.process_time() - start}
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                continue
        data = json.dumps(answer).encode() + b"\n"
        while data:
            data = data[os.write(answers, data) :]


def run(source: str, space: dict[str, object], name: str) -> dict[str, object]:
    """Run ``source``; where its last statement is an expression, answer with its value as Python shows it."""
    # Frames of an error show their lines.
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    try:
        tree = ast.parse(source, name)
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, name, "exec"), space)
        if not isinstance(last, ast.Expr):
            return {"value": None}
        value = eval(compile(ast.Expression(last.value), name, "eval"), space)
        return {"value": None if value is None else repr(value)[:LONGEST]}
    except SystemExit as leaving:
        return {"error": f"SystemExit: {leaving.code}"}
    except BaseException as error:
        skip = error.__traceback__
        while skip is not None and skip.tb_frame.f_code.co_filename != name:
            skip = skip.tb_next
        traceback.print_exception(type(error), error, skip)
        return {"error": " ".join(traceback.format_exception_only(type(error), error)[-1].split())[:2000]}


serve()
