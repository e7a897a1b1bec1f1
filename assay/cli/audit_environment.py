"""``assay audit --environment``: how far can a world be trusted?"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.common import options_of
from assay.errors import RunError

if TYPE_CHECKING:
    from assay.audit.environment import Finding


def audit_environment(
    environment: str, words: Iterable[str], tasks: int, seed: int, workers: int, out: Path | None, as_json: bool
) -> int:
    """Play an environment in processes and print what each check found; 1 where one does not hold.

    Raises:
        UsageError: no such environment, options it does not take, or no tasks.
        RunError: it fails, or the record cannot be written.
    """
    from assay.audit.environment import audit_environment as checks
    from assay.environments.base import EnvironmentFailure
    from assay.environments.hosted.worlds import Worlds

    options = options_of(environment, words)
    worlds = Worlds({"name": environment, **options}, workers or 2)
    source = worlds.here().tasks()
    played = [source[i] for i in range(tasks if source.size is None else min(tasks, source.size))]
    findings = []
    try:
        worlds.start()
        for finding in checks(worlds, played, seed):
            findings.append(finding)
            if not as_json:
                _print(finding)
    except EnvironmentFailure as error:
        raise RunError(f"environment {environment!r} failed while it was audited: {error}") from None
    finally:
        worlds.close()
    record = {
        "environment": environment,
        "options": options,
        "tasks": len(played),
        "seed": seed,
        "passed": all(f.passed for f in findings),
        "checks": [_data(f) for f in findings],
    }
    if out is not None:
        from assay.records.files import write_text

        try:
            out.mkdir(parents=True, exist_ok=True)
            write_text(out / "environment.json", json.dumps(record, indent=1) + "\n")
        except OSError as error:
            raise RunError(f"could not write to {out}: {error.strerror or error}") from None
    if as_json:
        print(json.dumps(record))
    return 0 if record["passed"] else 1


def _data(finding: Finding) -> dict[str, Any]:
    from assay.statistics.rate import rate_data

    return {
        "check": finding.name,
        "passed": finding.passed if finding.bound else None,
        "rate": rate_data(finding.rate),
        "first": finding.first,
    }


def _print(finding: Finding) -> None:
    from assay.printable import printable

    word = ("ok    " if finding.passed else "FAILED") if finding.bound else "told  "
    line = f"{word} {finding.name:19} {finding.holds} of {finding.of}"
    if not finding.bound:
        rate = finding.rate
        line += f" ({rate.value:.1%}, 95% interval {rate.low:.1%} to {rate.high:.1%})"
    print(line + (f"; {printable(finding.first)}" if finding.first and finding.bound else ""), flush=True)
