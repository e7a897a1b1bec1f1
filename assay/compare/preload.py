"""What the server that runs are forked from imports once, so that none has to; nothing is computed.

Importing this module imports every part of every seam, and the libraries a run needs.
"""

from __future__ import annotations

import contextlib
import importlib
import os

# Asked in the usual way whether there is a GPU, the driver would refuse every process forked from this one.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

from assay.registry import PACKAGES, names

MODULES = (
    "assay.compare.budget",
    "assay.training.build",
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
    "transformers.convert_slow_tokenizer",
    "transformers.models.llama.modeling_llama",
)

# What is wrong with a part or a library is for the run to say that needs it.
for module in MODULES:
    with contextlib.suppress(Exception):
        importlib.import_module(module)
for seam in PACKAGES:
    with contextlib.suppress(Exception):
        names(seam)
