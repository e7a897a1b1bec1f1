"""What is released: a source distribution, the wheel made of that, and commands from the wheel in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SMALL = ["model.nano.hidden=16", "model.nano.layers=1", "model.nano.heads=2", "rollout.prompts=2", "rollout.group=2"]
SMALL += ["rollout.max_tokens=4", "train.steps=1", "warmup.steps=1", "warmup.batch=2", "evaluate.samples=1"]
BUILD = "import sys; from setuptools import build_meta as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"


def built(kind: str, source: Path, into: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", BUILD, kind, str(into)], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return into / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is made of what the source distribution holds, of the files that git knows."""
    pytest.importorskip("setuptools", "77", reason="needs setuptools of version 77 or more")
    place = tmp_path_factory.mktemp("release")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout.decode()
    if not listed:
        pytest.skip("not a checkout")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and (name.startswith("assay/") or "/" not in name):
            (place / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            (place / "source" / name).write_bytes((ROOT / name).read_bytes())
    sdist = built("build_sdist", place / "source", place)
    with tarfile.open(sdist) as file:
        file.extractall(place / "unpacked", filter="data")
    [unpacked] = (place / "unpacked").iterdir()
    return built("build_wheel", unpacked, place)


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    listed = subprocess.run(["git", "ls-files", "assay"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    missing = [name for name in listed.splitlines() if name not in held and (ROOT / name).is_file()]
    assert missing == []
    assert "assay/py.typed" in held and not [name for name in held if name.startswith(("tests", "docs", "lab/"))]


def test_commands_from_the_wheel_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    site = next((tmp_path / "venv" / "lib").glob("python*")) / "site-packages"
    zipfile.ZipFile(wheel).extractall(site)
    # What assay needs is taken from where the tests run; assay itself is found first in its own place.
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    work = tmp_path / "work"
    work.mkdir()
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}

    def assay(*words: str) -> str:
        done = subprocess.run(
            [str(tmp_path / "venv" / "bin" / "python"), "-m", "assay", *words],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-2000:]
        return done.stdout

    code = "import assay; print(assay.__file__)"
    where = subprocess.run(
        [str(tmp_path / "venv" / "bin" / "python"), "-c", code],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(site)
    assert "gsm8k" in assay("recipes")
    assay("quickstart", *SMALL, "tasks.eval_size=4")
    assert (work / "runs" / "quickstart" / "report.html").is_file()
    assert '"S001"' in assay("papers", "list", "--json")
    assert "dapo" in assay("papers", "show", "dapo")
    assay("init", "mine.toml")
    assert '"passed": true' in assay("verify", "math", "--reference", "1/2", "--response", r"\boxed{0.5}", "--json")
