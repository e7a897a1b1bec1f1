"""The program in the very process of its tests, for tests that stand-ins cannot serve; nothing protects the tests."""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any

from assay.verify.code.inside.serving import _trace


class LocalLink:
    """What :class:`~assay.verify.code.inside.link.Link` is to tests, with the program's own objects."""

    def __init__(self, writer: int, source: str, module: str):
        self._writer, self._source, self._module = writer, source, module
        self.dead, self.deaths, self.last, self.problem = True, 0, "", ""
        self.given = 1
        self.module = types.ModuleType(module)

    def start(self) -> None:
        self.dead = False
        sys.modules[self._module] = self.module
        file = f"{self._module}.py"
        try:
            exec(compile(self._source, file, "exec"), self.module.__dict__)
        except BaseException as error:
            self.problem = _trace(error, file)

    def find(self, name: str) -> Any:
        return self.module.__dict__[name]

    def tell(self, message: dict[str, Any]) -> None:
        os.write(self._writer, b"!" + json.dumps(message).encode() + b"\n")
