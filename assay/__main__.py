"""``python -m assay``, for where the command ``assay`` is not on the path."""

from assay.cli import main

main()
