"""What starting up must not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "pandas", "datasets", "reasoning_gym")


def loaded(code: str) -> set[str]:
    """The heavy packages that a new interpreter holds after ``code``."""
    script = f"{code}\nimport sys\nprint('LOADED', *[m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    return set(out.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    "code",
    [
        "import assay, assay.types, assay.config, assay.tasks, assay.verify; assay.Task",
        "from assay import cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass",
        "from assay import cli\ntry: cli.main(['train', '--help'])\nexcept SystemExit: pass",
        "from assay import cli\ntry: cli.main(['tasks', 'sample', 'countdown', '--json'])\nexcept SystemExit: pass",
    ],
    ids=["package, tasks, verifiers", "help", "train help", "task sample"],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    assert loaded(code) == set()


def test_the_test_sees_what_is_loaded() -> None:
    assert "pandas" in loaded("import sys; sys.modules['pandas'] = sys")


def test_names_load_on_first_use() -> None:
    import assay

    for name in assay.__all__:
        assert getattr(assay, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        assay.trian  # noqa: B018
