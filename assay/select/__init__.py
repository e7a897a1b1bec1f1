"""Select: which samples do we learn from?"""

from assay.select import everything

__all__ = ["everything"]
