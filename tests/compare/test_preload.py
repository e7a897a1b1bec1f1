"""What runs are forked from has imported all, and never a GPU before its eyes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import importlib, os
import assay.compare, assay.registry
seen, before = [], os.environ.get("CUDA_VISIBLE_DEVICES")
importlib.import_module = lambda name: seen.append(os.environ["CUDA_VISIBLE_DEVICES"])
import assay.compare.preload
assert seen and set(seen) == {""}, seen
assert os.environ.get("CUDA_VISIBLE_DEVICES") == before
assert os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] == "1"
"""


@pytest.mark.slow
@pytest.mark.parametrize("visible", [pytest.param(None, marks=pytest.mark.slow), "0,3"])
def test_no_import_sees_a_gpu(visible: str | None) -> None:
    given = {k: v for k, v in os.environ.items() if k not in ("CUDA_VISIBLE_DEVICES", "PYTORCH_NVML_BASED_CUDA_CHECK")}
    given |= {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env=given)
