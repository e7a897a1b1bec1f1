"""The worked example of docs/environments.md does what the page says."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from serving import served

from assay.environments.base import Environment
from assay.environments.tools import say
from assay.registry import build

MCP_SERVER = Path(__file__).parent / "foreign" / "mcp_server.py"
PAGE = (Path(__file__).parents[2] / "docs/environments.md").read_text(encoding="utf-8")


def test_the_example(tmp_path: Path) -> None:
    code, *_ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    recipe, *_ = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "till.py").write_text(code)
    assert len(code.splitlines()) <= 60
    named = tomllib.loads(recipe)["tasks"]["source"]["environment"].replace("till.py", str(tmp_path / "till.py"))
    source = build("tasks", {"name": "environment", "environment": named})
    for index in range(source.size):
        world, idle = build("environment", named), build("environment", named)
        assert isinstance(world, Environment)
        world.reset(source[index], 0)
        idle.reset(source[index], 0)
        for action in world.gold():
            assert world.step(action).valid
        assert world.verdict().passed
        assert idle.step(say("done")).terminated and not idle.verdict().passed


@pytest.mark.slow
def test_the_foreign_worlds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    section = PAGE.partition("## Foreign worlds")[2].partition("\n## ")[0]
    with served({"name": "guess", "most": 9}) as server:
        for recipe in re.findall(r"```toml\n(.*?)```", section, re.DOTALL):
            spec = tomllib.loads(recipe.replace("http://127.0.0.1:8000", server.url))["method"]["rollout"][
                "environment"
            ]
            if spec["name"] == "textworld" and importlib.util.find_spec("textworld") is None:
                continue
            if spec["name"] == "alfworld":
                continue  # its games are fetched; tests/environments/foreign/test_alfworld.py writes some
            if spec["name"] == "verifiers":
                root = Path(__file__).parents[2]
                if not (root / spec["python"]).exists():
                    continue
                spec |= {"python": str(root / spec["python"]), "path": [str(root / spec["path"][0])]}
            if spec["name"] == "mcp":
                spec |= {"command": [sys.executable, str(MCP_SERVER)], "questions": str(tmp_path / spec["questions"])}
                row = {"prompt": "Pay 3.", "reference": '{"cash": 7}', "kind": "json", "setup": {"cash": 10}}
                (tmp_path / "till.jsonl").write_text(json.dumps(row))
            world = build("environment", spec)
            task = world.tasks()[0]
            shown = world.reset(task, 0)
            assert world.step(say(shown.admissible[0] if shown.admissible else "5")).valid
            assert world.verdict().passed is not None
            world.close()
