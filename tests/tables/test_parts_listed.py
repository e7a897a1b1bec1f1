"""What a recipe can be made of, listed; parts of other packages among them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay import cli, registry
from assay.errors import UsageError
from assay.registry import PACKAGES, build, names
from assay.tables.parts import arguments, part_rows, row


def command(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(words))
    return (int(ended.value.code or 0), *capfd.readouterr())


def test_a_part_with_options_defaults_and_meanings(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capfd, "parts", "credit", "gae", "--json")
    found = json.loads(out)
    options = {o["name"]: o for o in found["options"]}
    assert code == 0 and found["module"] == "assay.credit.gae"
    assert options["decay"] | {"about": ""} == {
        "name": "decay", "type": "float", "default": "0.95", "required": False, "about": "",
    }  # fmt: skip
    assert options["decay"]["about"] == "gamma and lambda, in [0, 1]."
    assert "meaning" in command(capfd, "parts", "credit", "gae")[1]


def test_every_part_of_a_seam_says_what_it_does(capfd: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(command(capfd, "parts", "objective", "--json")[1])
    assert [r["name"] for r in rows] == names("objective")
    assert all(r["about"] and r["seam"] == "objective" for r in rows)
    assert command(capfd, "parts", "credits")[2].startswith(
        "assay: no seam is called 'credits'; did you mean 'credit'?"
    )
    with pytest.raises(UsageError, match="no credit part is called 'gea'"):
        row("credit", "gea")


def test_every_part_of_every_seam_is_listed() -> None:
    rows = part_rows()
    assert {(r.seam, r.name) for r in rows} == {(seam, name) for seam in PACKAGES for name in names(seam)}
    assert [f"{r.seam} {r.name}" for r in rows if not r.about] == []


def test_what_is_inherited_is_said_too() -> None:
    said = {o.name: o.about for o in row("objective", "cispo").options}
    assert said["kl_weight"].startswith("weight of the divergence") and said["clip_high"]


def test_parts_and_papers_are_found_by_words(capfd: pytest.CaptureFixture[str]) -> None:
    found = json.loads(command(capfd, "parts", "LUFFY", "--json")[1])
    assert [(r["seam"], r["name"]) for r in found] == [("objective", "shaped")]
    assert ("reward", "majority") in [
        (r["seam"], r["name"]) for r in json.loads(command(capfd, "parts", "vote majority", "--json")[1])
    ]
    assert "no part says so" in command(capfd, "parts", "zyzzyva")[2]
    assert command(capfd, "parts", "such", "gae")[2].startswith("assay: no seam is called 'such'")
    rows = json.loads(command(capfd, "papers", "list", "rubric open-ended", "--json")[1])
    assert "S113" in [r["id"] for r in rows] and len(rows) < 20
    assert "no paper says 'zyzzyva'" in command(capfd, "papers", "list", "zyzzyva")[2]


def test_arguments_of_a_docstring() -> None:
    text = "A.\n\nArgs:\n    a, b: ``x``, in [0, 1];\n        2 at most.\n    c: y.\n\nRaises:\n    UsageError: z."
    assert arguments(text) == {"a": "x, in [0, 1]; 2 at most.", "b": "x, in [0, 1]; 2 at most.", "c": "y."}
    assert arguments("A.") == {}


def test_standard_methods_and_parts_are_found_where_papers_are(capfd: pytest.CaptureFixture[str]) -> None:
    found = json.loads(command(capfd, "papers", "show", "DAPO", "--json")[1])
    assert found["method"] == {"objective": {"name": "clip", "clip_high": 0.28}, "rollout": "dynamic"}
    assert [(p["seam"], p["name"]) for p in found["parts"]] == [
        ("credit", "grpo"), ("objective", "clip"), ("rollout", "dynamic"),
    ]  # fmt: skip
    assert "overlong" in found["note"]
    said = command(capfd, "papers", "show", "grpo")[1]
    assert "credit grpo" in said and "objective clip" in said and "aggregation=sequence_mean" in said
    assert json.loads(command(capfd, "papers", "show", "drgrpo", "--json")[1])["name"] == "dr-grpo"
    assert json.loads(command(capfd, "papers", "show", "sapo", "--json")[1])["parts"][0]["seam"] == "objective"
    assert "clip_high = 0.28" in command(capfd, "papers", "show", "dapo")[1]
    assert command(capfd, "papers", "show", "nosuch")[0] == 2


def test_the_keys_of_a_recipe(capfd: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(command(capfd, "config", "--json")[1])
    assert len(rows) > 60 and all(r["about"] for r in rows)
    [lr] = json.loads(command(capfd, "config", "train.lr", "--json")[1])
    assert (lr["default"], lr["type"]) == ("auto", 'number, > 0 or "auto"')
    assert command(capfd, "config", "tain")[2] == "assay: no key is called 'tain'; did you mean 'train'?\n"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place where a distribution can be put, and a register that has not looked at those installed."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_PARTS", {seam: dict(parts) for seam, parts in registry._PARTS.items()})
    registry._installed.cache_clear()
    info = tmp_path / "spread-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: spread\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[assay.parts]\nspread = spread_of_parts\n")
    yield tmp_path / "spread_of_parts.py"
    sys.modules.pop("spread_of_parts", None)
    registry._installed.cache_clear()


def test_parts_of_an_installed_package(installed: Path) -> None:
    installed.write_text(
        "from dataclasses import dataclass\nfrom assay.registry import part\n"
        "@part('select', 'spread')\n@dataclass\nclass Spread:\n    '''Keeps all.'''\n    least: float = 0.5\n"
    )
    assert build("select", {"name": "spread", "least": 0.25}).least == 0.25
    assert "spread" in names("select") and row("select", "spread").options[0].default == "0.5"


def test_an_installed_package_that_is_broken_is_named(installed: Path) -> None:
    installed.write_text("import no_such_module\n")
    with pytest.raises(UsageError, match=r"the parts of spread \(assay.parts: spread = spread_of_parts\) cannot be"):
        names("select")
