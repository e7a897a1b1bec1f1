"""What the tests of formal tools share."""

from __future__ import annotations

import pytest
from sandbox.support import why_not

from assay.verify.formal.tool import Tool


def needs(*tools: Tool) -> pytest.MarkDecorator:
    """Skip where a tool or the sandbox is missing, saying which."""
    reason = next((t.missing for t in tools if t.missing), "") or why_not()
    return pytest.mark.skipif(bool(reason), reason=reason or "available")
