"""Task sources: what could be asked?"""

from assay.tasks.split import HeldOut, TrainStream, split

__all__ = ["HeldOut", "TrainStream", "split"]
