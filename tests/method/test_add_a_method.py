"""The worked example of docs/add-a-method.md does what the page says: code, recipe and test are run as they stand."""

from __future__ import annotations

import importlib
import inspect
import math
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import metrics, run, weights

import assay
import assay.credit
from assay import registry
from assay.config import load_config
from assay.tables import methods as table
from assay.tables import taxonomy

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
NAME = "quantile"
SHORT = {"train": {"steps": 2, "mini_batches": 1, "epochs": 1}, "warmup": {"steps": 0}, "evaluate": {"every": 0}}


def blocks(language: str) -> list[str]:
    """Every fenced block of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


CODE, TEST = blocks("python")
RECIPE, _ = blocks("toml")  # the other is a claim for the lab


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's file lies in the credit folder, as far as imports can see; afterwards it does not."""
    module = f"assay.credit.{NAME}"
    folder = tmp_path / "credit"
    folder.mkdir()
    (folder / f"{NAME}.py").write_text(CODE, encoding="utf-8")
    registry.names("credit")  # what is registered once is not registered again when forgotten
    known = dict(registry._PARTS["credit"])
    monkeypatch.setattr(assay.credit, "__path__", [*assay.credit.__path__, str(folder)])
    importlib.invalidate_caches()
    registry._registered.cache_clear()
    yield
    sys.modules.pop(module, None)
    assay.credit.__dict__.pop(NAME, None)
    registry._PARTS["credit"] = known
    registry._registered.cache_clear()


def test_the_file_is_as_short_as_promised() -> None:
    assert len(CODE.splitlines()) <= 40
    assert NAME not in registry.names("credit"), "the page adds what is there already"


@pytest.mark.usefixtures("added")
def test_adding_the_file_adds_the_part() -> None:
    assert NAME in registry.names("credit")
    assert registry.build("credit", NAME).q == 0.5


@pytest.mark.usefixtures("added")
def test_the_file_and_its_test_are_all_that_is_touched() -> None:
    """Pages made from the parts stay right of what they list, and would list the new part if they were made again."""
    text = (ROOT / "docs" / "taxonomy.md").read_text(encoding="utf-8")
    assert taxonomy.stale(text) is None
    assert ("credit", NAME) in taxonomy.listed(taxonomy.page()) - taxonomy.listed(text)
    assert not [line for line in taxonomy.undecided(taxonomy.rows()) if NAME in line], "it wants a row of its own"
    assert (ROOT / "docs" / "objectives.md").read_text(encoding="utf-8") == table.page()


@pytest.mark.usefixtures("added")
def test_the_tests_of_the_page_pass(request: pytest.FixtureRequest) -> None:
    found: dict[str, Any] = {"__name__": "page"}
    exec(compile(TEST, "docs/add-a-method.md", "exec"), found)
    tests = {k: f for k, f in found.items() if k.startswith("test_")}
    assert len(tests) == 3
    for test in tests.values():
        test(**{name: request.getfixturevalue(name) for name in inspect.signature(test).parameters})


@pytest.mark.usefixtures("added", "one_thread")
def test_the_recipe_of_the_page_trains(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", **tomllib.loads(RECIPE), **SHORT)
    assert "q = 0.75" in (folder / "config.toml").read_text(encoding="utf-8")
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(steps) == 2 and all(math.isfinite(row["loss"]) and row["grad_norm"] > 0 for row in steps)
    other = weights(run(tmp_path / "grpo", method={"credit": "grpo"}, **SHORT))
    ours = weights(folder)
    assert any(bool((ours[k] != other[k]).any()) for k in ours), "the credit made no difference"


def test_the_overrides_of_the_page_say_the_same_as_its_recipe() -> None:
    [overrides] = re.findall(r"`(method\.credit\.name=\S+ method\.credit\.q=\S+)`", PAGE)
    assert load_config(None, overrides.split()).method == load_config(tomllib.loads(RECIPE)).method
    assert load_config(None, ["method.credit=quantile"]).method.credit == NAME


@pytest.mark.usefixtures("added")
def test_the_object_works_in_place_of_the_name() -> None:
    module = importlib.import_module(f"assay.credit.{NAME}")
    method = assay.Method(credit=module.Quantile(0.75))
    assert method.group_relative and method.parts["credit"].q == 0.75


def test_every_file_the_page_names_is_there() -> None:
    mine = {f"assay/credit/{NAME}.py", f"tests/credit/test_credit_{NAME}.py", "assay/papers/FAMILY/sNNN_name.py"}
    named = set(re.findall(r"`((?:assay|tests)/[\w/]+(?:\.py|/))`", PAGE)) - mine
    assert len(named) > 8
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
