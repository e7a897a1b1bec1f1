"""The JSON Schemas of the documents that commands write, which are shipped with the package."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from assay.errors import UsageError, nearest

WHERE = {
    "results": "assay.evaluate",
    "strategies": "assay.evaluate",
    "diagnosis": "assay.evaluate",
    "compare": "assay.compare",
}
"""Package that has ``NAME.schema.json``, the schema of ``NAME.json``."""


def document_schema(name: str) -> dict[str, Any]:
    """Return the schema of ``results.json``, ``strategies.json``, ``diagnosis.json`` or ``compare.json``.

    Args:
        name: of the document, without ``.json``.

    Raises:
        UsageError: another name.
    """
    if name not in WHERE:
        raise UsageError(f"no schema of a document {name!r}{nearest(name, WHERE)}")
    text = files(WHERE[name]).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
