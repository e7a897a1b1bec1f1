"""``assay benchmarks``: what ``assay eval`` knows by name."""

from __future__ import annotations

import json

from assay.cli.common import AsJson, print_table


def benchmarks(as_json: AsJson = False) -> int:
    """List the benchmarks that assay eval MODEL NAME measures a model on.

    Their data come from the Hugging Face hub, or from a file or folder: assay eval MODEL NAME=PATH.

    Example: assay benchmarks

    Args:
        as_json: print JSON, with the prompts and the fields that are read.
    """
    from assay.tasks.files.benchmark import benchmarks as known

    if as_json:
        print(json.dumps([{"name": name, **entry} for name, entry in known().items()]))
    else:
        rows = [(n, f"{e['tasks']:,}", e["path"], e["about"]) for n, e in known().items()]
        print_table(("benchmark", "tasks", "on the hub", "what it asks"), rows)
    return 0
