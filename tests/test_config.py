"""Configurations: what a recipe may say, how overrides change it, and that a dump reads back equal."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.config import RunConfig, apply_override, differences, dump_config, load_config
from assay.errors import UsageError
from assay.method import make_method
from assay.recipes.other_names import NAMES
from assay.tables.settings import keys

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "assay" / "recipes").glob("*.toml"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda p: p.name)
def test_every_recipe_reads_and_its_dump_reads_back_equal(recipe: Path, tmp_path: Path) -> None:
    config = load_config(recipe)
    (tmp_path / "config.toml").write_text(dump_config(config), encoding="utf-8")
    assert load_config(tmp_path / "config.toml") == config


plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
options = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.recursive(plain.filter(lambda v: v is not None), lambda inner: st.lists(inner, max_size=3), max_leaves=4),
    max_size=3,
)


@given(
    st.fixed_dictionaries(
        {
            "seed": st.integers(0, 2**62),
            "tasks": st.fixed_dictionaries({"source": st.builds(lambda o: {**o, "name": "file"}, options)}),
            "rollout": st.fixed_dictionaries(
                {"stop": st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))}
            ),
            "train": st.fixed_dictionaries(
                {"lr": st.floats(1e-12, 1.0), "betas": st.tuples(*2 * [st.floats(0, 1, exclude_max=True)])},
                optional={"target": st.none() | st.floats(0.01, 1.0)},
            ),
        }
    )
)
def test_any_dump_reads_back_equal(data: dict[str, Any]) -> None:
    config = load_config(data)
    again = RunConfig.model_validate(tomllib.loads(dump_config(config)))
    assert again == config
    assert differences(config, again) == {}


def test_what_toml_cannot_hold_is_one_line() -> None:
    with pytest.raises(UsageError, match="cannot be written as TOML"):
        dump_config(load_config({"tasks": {"source": {"name": "file", "path": object()}}}))


@pytest.mark.parametrize(
    ("before", "override", "after"),
    [
        ({}, "train.steps=50", {"train": {"steps": 50}}),
        ({}, "a.b.c=0.5", {"a": {"b": {"c": 0.5}}}),
        ({}, "model=nano", {"model": {"source": "nano"}}),
        ({}, "method=S014", {"method": "S014"}),
        ({}, "run.dir=runs/a b", {"run": {"dir": "runs/a b"}}),
        ({}, 'run.dir="3"', {"run": {"dir": "3"}}),
        ({}, "rollout.stop=['a', 'b']", {"rollout": {"stop": ["a", "b"]}}),
        ({}, "method.credit={name='grpo', ddof=0}", {"method": {"credit": {"name": "grpo", "ddof": 0}}}),
        ({}, "tasks.source.path=a=b", {"tasks": {"source": {"path": "a=b"}}}),
        # A name that stands where a table is needed becomes that table's name.
        ({"method": "S014"}, "method.objective.x=0.3", {"method": {"name": "S014", "objective": {"x": 0.3}}}),
        ({"tasks": "countdown"}, "tasks.eval_size=7", {"tasks": {"source": "countdown", "eval_size": 7}}),
        ({"tasks": "chain"}, "tasks.source.seed=7", {"tasks": {"source": {"name": "chain", "seed": 7}}}),
        ({"model": "nano"}, "model.nano.hidden=8", {"model": {"source": "nano", "nano": {"hidden": 8}}}),
        ({"method": {"credit": "grpo"}}, "method.credit.ddof=0", {"method": {"credit": {"name": "grpo", "ddof": 0}}}),
        # Another model or source leaves the rest of the section; another method does not.
        ({"tasks": {"eval_size": 7, "source": "chain"}}, "tasks=file", {"tasks": {"eval_size": 7, "source": "file"}}),
        ({"model": {"lora": {"rank": 2}}}, "model=nano", {"model": {"lora": {"rank": 2}, "source": "nano"}}),
        ({"method": {"name": "grpo", "objective": "clip"}}, "method=S014", {"method": "S014"}),
    ],
)
def test_overrides(before: dict[str, Any], override: str, after: dict[str, Any]) -> None:
    apply_override(before, override)
    assert before == after


def test_short_forms() -> None:
    config = load_config({"method": "S014", "model": "nano", "tasks": "countdown"})
    assert (config.method.name, config.model.source, config.tasks.source) == ("S014", "nano", "countdown")


def test_a_recipe_is_not_changed_by_its_overrides() -> None:
    recipe = {"train": {"steps": 3}}
    assert load_config(recipe, ["train.steps=4"]).train.steps == 4
    assert recipe == {"train": {"steps": 3}}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("tran.steps=3", r"unknown key 'tran'; did you mean 'train'\?"),
        ("train.temperature=1", r"unknown key 'train.temperature'; did you mean 'rollout.temperature'\?"),
        ("train.num_generations=4", r"unknown key 'train.num_generations'; here it is rollout.group"),
        ("warmup.learning_rate=1e-3", r"unknown key 'warmup.learning_rate'; here it is lr"),
        ("train.stepz=3", r"unknown key 'train.stepz'; did you mean 'steps'\?"),
        ("model.nano.hiden=4", r"unknown key 'model.nano.hiden'; did you mean 'hidden'\?"),
        ("model.lora.rnk=4", r"unknown key 'model.lora.rnk'; did you mean 'rank'\?"),
        ("a=1", "unknown key 'a'; known: deterministic, engine, evaluate, method, model, "),
        ("train.steps=many", "train.steps = 'many': Input should be a valid integer"),
        ("train.steps=1.5", "train.steps = 1.5: Input should be a valid integer"),
        ("train.lr=true", "train.lr = True: expected another type than true or false"),
        ("train.lr=nan", "train.lr = nan: Input should be a finite number"),
        ("train.lr=0", "train.lr = 0: Input should be greater than 0"),
        ("train.lr=high", "train.lr = 'high': Input should be a valid number"),
        ("tasks.eval_size=0", "tasks.eval_size = 0: Input should be greater than or equal to 1"),
        ("train.betas=[0.9]", r"train.betas.1 = \[0.9\]: Field required"),
        ("tasks.source=3", "tasks.source = 3: expected a name, or a table with a name and options"),
        ("method=3", "method = 3: expected a table or a name"),
        ("train=3", "train = 3: expected a table$"),
        ("seed=-1", "seed = -1: Input should be greater than or equal to 0"),
        ("train.steps", "override 'train.steps' is not of the form a.b.c=value"),
        ("=3", "override '=3' is not of the form"),
        ("a..b=3", r"override 'a\.\.b=3' is not of the form"),
        ("train.steps.x=3", "override 'train.steps.x=3': steps is 5, not a table"),
    ],
)
def test_a_wrong_override_is_one_line(override: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        load_config({"train": {"steps": 5}}, [override])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("given", "meant"), [("tasks.jsnl", "tasks.jsonl"), ("recpe.toml", "recipe.toml")])
def test_a_mistyped_file_is_called_by_its_name(tmp_path: Path, given: str, meant: str) -> None:
    for name in ("tasks.jsonl", "recipe.toml", "tasks.jsn.txt"):
        (tmp_path / name).write_text("")
    with pytest.raises(UsageError, match=rf"no file .*{given}; did you mean '.*/{meant}'\?"):
        load_config(tmp_path / given)


def test_a_wrong_recipe_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no recipe .*missing.toml; known: .*gsm8k.*; `assay recipes` lists them"):
        load_config(tmp_path / "missing.toml")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("a = [")
    with pytest.raises(UsageError, match=r"recipe.toml is not TOML: "):
        load_config(recipe)
    recipe.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"recipe.toml is not TOML: "):
        load_config(recipe)
    recipe.write_text("[train]\nstepz = 3\n")
    with pytest.raises(UsageError, match=r"recipe.toml: unknown key 'train.stepz'"):
        load_config(recipe)


def test_differences() -> None:
    a = load_config({"seed": 1, "method": {"credit": "grpo"}})
    b = load_config({"seed": 2, "method": {"credit": {"name": "grpo", "ddof": 0}}})
    assert differences(a, b) == {"seed": "1 -> 2", "method.credit": "'grpo' -> {'name': 'grpo', 'ddof': 0}"}
    assert differences(a, a) == {}


def test_what_is_wrong_in_an_override_is_not_the_files_fault(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("seed = 1\n")
    with pytest.raises(UsageError, match=r"^overrides: unknown key 'methd'"):
        load_config(file, ["methd=grpo"])
    file.write_text("sead = 1\n")
    with pytest.raises(UsageError, match=r"mine\.toml: unknown key 'sead'"):
        load_config(file, ["train.steps=3"])


def test_what_other_trainers_call_a_key_leads_to_one_that_is_there() -> None:
    known = {row.key for row in keys()}
    for name, meant in NAMES.items():
        assert meant in known or "=" in meant, name
        if "=" in meant:
            key, _, value = meant.partition(" = ")
            assert key in known
            parts = {key.rpartition(".")[2]: tomllib.loads(f"value = {value}")["value"]}
            make_method("grpo", **parts)
        assert name not in {key.rpartition(".")[2] for key in known}, f"{name} is a key here"
