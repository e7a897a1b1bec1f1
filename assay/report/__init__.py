"""What a run achieved, as one page to read and send."""

from assay.report.html import write_report

__all__ = ["write_report"]
