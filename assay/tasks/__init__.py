"""Task sources: what could be asked?"""

from assay.tasks import arithmetic, chain, countdown, file, gym, huggingface, mixture
from assay.tasks.split import HeldOut, TrainStream, split

__all__ = [
    "HeldOut",
    "TrainStream",
    "arithmetic",
    "chain",
    "countdown",
    "file",
    "gym",
    "huggingface",
    "mixture",
    "split",
]
