"""What was drawn, as text: points, and pictures by ``data:`` URL."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from fuzz.entry import Case, entry

RED = ""
if find_spec("PIL") is not None:
    from assay.policies.flow.samples import written

    SQUARE = np.ones((4, 4, 3), np.float32)
    SQUARE[1:3, 1:3] = (1, -1, -1)
    RED = written(SQUARE)

entry(
    "near", marked=False, cases=[Case([2.0, 0.0], ["2 0", "2.1 -0.05"]), Case([0, 0, 1], ["0 0 1", "a<drawn>0 0 .9"])]
)
entry("right", marked=False, apart=False, cases=[Case(None, ["2 0", "1e9"])])
entry("likeness", marked=False, needs=("PIL",), cases=[Case(RED, [RED, f"a red square<drawn>{RED}"])])
