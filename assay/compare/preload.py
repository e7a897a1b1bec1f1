"""What the server that runs are forked from imports once, so that none has to; nothing is computed.

Importing this module imports every part of every seam, and the libraries a run needs.
"""

from __future__ import annotations

import contextlib
import importlib
import os

from assay.registry import PACKAGES, names

# A process whose parent has used the driver of a GPU, or only asked it how many there are, gets none. transformers'
# models ask when they are imported, so meanwhile there are none; torch is to look by other means than the driver.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
VISIBLE = os.environ.get("CUDA_VISIBLE_DEVICES")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

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

if VISIBLE is None:
    del os.environ["CUDA_VISIBLE_DEVICES"]
else:
    os.environ["CUDA_VISIBLE_DEVICES"] = VISIBLE
