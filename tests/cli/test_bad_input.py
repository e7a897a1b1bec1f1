"""Whatever is wrong with a request ends in one line and exit code 2, before a folder is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from running import recipe

import assay
from assay import cli
from assay.errors import RunError, UsageError
from assay.policies.causal_lm import CausalLM
from assay.types import Task


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a recipe and files of many kinds."""
    monkeypatch.chdir(tmp_path)
    Path("recipe.toml").write_text(tomli_w.dumps(recipe("run")))
    rows = [{"prompt": f"say {i}", "answer": "1"} for i in range(60)]
    Path("plain.jsonl").write_text("\n".join(map(json.dumps, rows)))
    rows[7]["prompt"] = "a" * 40
    Path("long.jsonl").write_text("\n".join(json.dumps({**r, "worked": "1"}) for r in rows))
    del rows[1]["answer"]
    Path("gap.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("empty.jsonl").write_text("")
    Path("half.jsonl").write_text("\n".join(json.dumps({"prompt": f"{i} \ud83d", "answer": "1"}) for i in range(60)))
    Path("file").write_text("x")
    Path("broken.py").write_text("def f(:\n")
    Path("one.py").write_text("def f(response):\n    return 1\n")
    return tmp_path


def attempt(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code of the command, and what it wrote to standard error."""
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    return int(ended.value.code or 0), capfd.readouterr().err


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        # Keys and values
        (["train.stepz=3"], "unknown key 'train.stepz'; did you mean 'steps'?"),
        (["train.steps=many"], "train.steps = 'many': Input should be a valid integer"),
        (["train.steps"], "override 'train.steps' is not of the form a.b.c=value"),
        # Values that nothing can be done with
        (["seed=18446744073709551616"], "seed = 18446744073709551616: "),
        (["seed=-1"], "seed = -1: Input should be greater than or equal to 0"),
        (["train.betas=[2, 3]"], "train.betas.0 = 2: Input should be less than 1"),
        (["train.betas=[0.9, nan]"], "train.betas.1 = nan: Input should be a finite number"),
        (["train.lr=inf"], "train.lr = inf: Input should be a finite number"),
        (["rollout.temperature=inf"], "rollout.temperature = inf: Input should be a finite number"),
        (["evaluate.temperature=nan"], "evaluate.temperature = nan: Input should be a finite number"),
        (["rollout.stop=['']"], "rollout.stop.0 = '': String should have at least 1 character"),
        (["rollout.max_tokens=1e12"], "rollout.max_tokens = 1000000000000.0: Input should be less than or equal to"),
        (["rollout.group=1e12"], "rollout.group = 1000000000000.0: Input should be less than or equal to"),
        (["train.steps=1e30"], "train.steps = 1e+30: Unable to parse input string as an integer"),
        (["model.nano.hidden=1e8"], "model.nano.hidden = 100000000.0: Input should be less than or equal to 65536"),
        (["model.nano.layers=1e6"], "model.nano.layers = 1000000.0: Input should be less than or equal to 1024"),
        (["model.nano.intermediate=-1"], "model.nano.intermediate = -1: Input should be greater than 0"),
        (["model.nano.alphabet=''"], "model.nano.alphabet = '': String should have at least 1 character"),
        (["tasks.verify_workers=-1"], "tasks.verify_workers = -1: Input should be greater than or equal to 0"),
        (["tasks.verify_workers=1e6"], "tasks.verify_workers = 1000000.0: Input should be less than or equal to 4096"),
        (["tasks.source.digits=100000"], "digits 100000 times terms 2 must be at most 4,000"),
        (["tasks.source.seed=18446744073709551616"], "tasks 'arithmetic': a seed of 65 bits is too large"),
        (["tasks.source={name='chain', length=1000000000}"], "tasks 'chain': length 1000000000 must be at most"),
        (["tasks.source={name='chain', length=-3}"], "tasks 'chain': option length = -3 must not be negative"),
        # Models
        (["model=./missing"], "model.source: no folder ./missing"),
        (["model=missing.gguf"], "model.source: no file missing.gguf"),
        (["model=."], "holds no config.json"),
        (["model.nano.context=4"], "does not fit the model's context of 4"),
        # Tasks
        (["tasks=arithmetik"], "no tasks part is called 'arithmetik'; did you mean 'arithmetic'?"),
        (["tasks.source.digitz=3"], "tasks 'arithmetic' has no option 'digitz'; did you mean 'digits'?"),
        (["tasks.source.digits=many"], "tasks 'arithmetic': option digits = 'many': "),
        (["tasks.source={digits=3}"], "a tasks table needs name"),
        (["tasks.source={name='file'}"], "tasks 'file' needs path"),
        (["tasks.source={name='file', path='none.jsonl'}"], "no file none.jsonl"),
        (["tasks.source={name='file', path='empty.jsonl'}"], "empty.jsonl has no rows"),
        (["tasks.source={name='file', path='gap.jsonl'}"], "gap.jsonl line 2 has no field 'answer'"),
        (["tasks.source={name='file', path='plain.jsonl'}"], "the warm-up needs worked solutions and task plain"),
        (
            ["tasks.source={name='file', path='long.jsonl', solution='worked'}"],
            "task long.jsonl/7: its prompt of 41 tokens does not fit the model's context of 24",
        ),
        (
            ["tasks.source={name='file', path='plain.jsonl', kind='exackt'}", "warmup.steps=0"],
            "task plain.jsonl/0 is of kind 'exackt', which no verifier judges; did you mean 'exact'?",
        ),
        (
            ["tasks.source={name='file', path='half.jsonl'}", "warmup.steps=0"],
            "task 'half.jsonl/0': its text is no Unicode, surrogates not allowed in '0 \\ud83d'",
        ),
        (["tasks.source={name='file', path='plain.jsonl'}", "tasks.eval_size=61"], "eval_size 61 is too large"),
        (["tasks.verify=exat"], "no verify part is called 'exat'; did you mean 'exact'?"),
        # Methods
        (["rollout.group=1"], "credit GRPO compares a response with its siblings; rollout.group = 1"),
        (["method=S999"], "no paper has the id 'S999'"),
        (["method=dispoo"], "no paper is called 'dispoo'; did you mean 'dispo'?"),
        (["method.credit=grpp"], "no credit part is called 'grpp'; did you mean 'grpo'?"),
        (["method.credit={name='grpo', ddofx=1}"], "credit 'grpo' has no option 'ddofx'; did you mean 'ddof'?"),
        (["method.credit={name='grpo', ddof='x'}"], "credit 'grpo': option ddof = 'x': "),
        (["method.objective.clip_hih=0.3"], "objective ClippedSurrogate has no option 'clip_hih'; did you mean"),
        (["method.objective.clip_high=x"], "objective ClippedSurrogate: option clip_high = 'x': "),
        (["method.curriculum=unifrom"], "no curriculum part is called 'unifrom'; did you mean 'uniform'?"),
        (["method.curriculum.x=1"], "curriculum 'uniform' has no option 'x'"),
        (["method.rollout={x=1}"], "rollout 'single_turn' has no option 'x'"),
        (["method.reward.weights={a=1}", "method.reward.name=weighted"], "reward 'weighted'"),
        # Reward functions
        (["method.reward={name='function', function='no.py:f'}"], "no file 'no.py'; write path/to/file.py:name"),
        (["method.reward={name='function', function='broken.py:f'}"], "broken.py raised SyntaxError"),
        (["method.reward={name='function', function='one.py:g'}"], "one.py has no function 'g'; known: f"),
        (["method.reward={name='function', function='one.py:f'}"], "reward function f(response) fits neither"),
        # Places
        (["run.dir=file"], "run folder file exists already"),
        (["run.dir=file/run"], "run folder file/run cannot be made: Not a directory"),
        (["run.dir=" + "a" * 300], "cannot be used: File name too long; choose another with run.dir=..."),
        (['run.dir="a\\u0000b"'], "cannot be made: embedded null byte"),
        (["run.dir=''"], "run.dir = '': String should have at least 1 character"),
    ],
    ids=lambda v: v[0].split("=")[0] if isinstance(v, list) else None,
)
def test_one_line_and_nothing_made(capfd: pytest.CaptureFixture[str], overrides: list[str], message: str) -> None:
    code, said = attempt(capfd, "train", "recipe.toml", *overrides)
    assert code == 2
    assert message in said
    assert said.startswith("assay: ")
    assert said.count("\n") == 1
    assert not Path("run").exists()


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("warmup", [0, 1])
def test_a_prompt_of_megabytes_is_refused_before_it_is_tokenised(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, warmup: int
) -> None:
    rows = [{"prompt": f"say {i}", "answer": "1", "worked": "1"} for i in range(60)]
    rows[30]["prompt"] = "a" * 5_000_000
    Path("huge.jsonl").write_text("\n".join(map(json.dumps, rows)))
    seen: list[int] = []
    encode = CausalLM.encode

    def counted(self: CausalLM, prompt: Any) -> Any:
        seen.append(len(prompt))
        return encode(self, prompt)

    monkeypatch.setattr(CausalLM, "encode", counted)
    source = "tasks.source={name='file', path='huge.jsonl', solution='worked'}"
    code, said = attempt(capfd, "train", "recipe.toml", source, f"warmup.steps={warmup}")
    assert code == 2 and max(seen, default=0) < 100
    assert (
        f"huge.jsonl/30: its text of {5_000_000 + warmup:,} characters does not fit the model's context of 24" in said
    )


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "name a recipe"),
        (["train", "none.toml"], "no recipe none.toml"),
        (["train", "file"], "file is not TOML: "),
        (["train", "--resume", "none"], "none is no run folder: it is not there"),
        (["train", "recipe.toml", "--resume", "none"], "--resume takes the recipe from none; leave out recipe.toml"),
        (["train", "recipe.toml", "--retries", "-1"], "--retries -1 is negative"),
        (["audit", "exact", "--workers", "-1"], "--workers -1 must be 0, one for each core, or 1 to "),
        (["eval", "plain.jsonl", "--workers", "-1"], "--workers -1 is negative"),
        (["train", "--resume", "a" * 300], "File name too long"),
        (["report", "none"], "none is no run folder"),
        (["eval", "none.toml"], "no recipe none.toml"),
        (["eval", "./none"], "model.source: no folder ./none"),
        (["eval", "recipe.toml", "--samples", "0"], "an evaluation needs at least one task, one sample per task"),
        (["tasks", "show", "arithmetik"], "did you mean 'arithmetic'?"),
        (["tasks", "sample", "arithmetic", "digits=x"], "option digits = 'x'"),
        (["papers", "show", "S999"], "no paper has the id 'S999'"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else None,
)
def test_other_commands(capfd: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    code, said = attempt(capfd, *arguments)
    assert code == 2
    assert message in said
    assert said.startswith("assay: ")
    assert said.count("\n") == 1


@pytest.mark.usefixtures("place")
def test_a_tokenizer_without_an_end_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    from transformers import PreTrainedTokenizerFast

    from assay.policies.nano import NanoConfig, nano_model, nano_tokenizer

    tokenizer = nano_tokenizer(NanoConfig())
    nano_model(NanoConfig(hidden=8, layers=1, heads=1), len(tokenizer), 0).save_pretrained("model")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, pad_token="<pad>").save_pretrained("model")
    capfd.readouterr()
    code, said = attempt(capfd, "train", "recipe.toml", "model=./model")
    assert code == 2
    assert "its tokenizer has no end-of-sequence token" in said
    assert said.count("\n") == 1


@pytest.mark.usefixtures("place")
def test_a_signal_nobody_computes_is_refused() -> None:
    class Wanting:
        needs = frozenset({"reference_logprob"})

        def __call__(self, batch: assay.Batch) -> Any:
            raise NotImplementedError

    method = assay.make_method(credit=Wanting())
    with pytest.raises(UsageError, match=r"needs the signal 'reference_logprob', which is not known; did you mean"):
        assay.train(recipe("run"), method=method, quiet=True)
    assert not Path("run").exists()


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1 / 0", "reward function f raised ZeroDivisionError: division by zero at reward.py:2 for row 0"),
        ("return float('nan')", "reward function f returned nan for row 0 (task "),
        ("return 'high'", "reward function f returned 'high' for row 0 (task "),
    ],
)
def test_a_reward_function_that_fails_ends_the_run_with_code_1(
    capfd: pytest.CaptureFixture[str], body: str, message: str
) -> None:
    Path("reward.py").write_text(f"def f(task, response):\n    {body}\n")
    reward = "method.reward={name='function', function='reward.py:f'}"
    code, said = attempt(capfd, "train", "recipe.toml", "--quiet", reward)
    assert code == 1
    assert message in said
    assert said.count("\n") == 1
    assert (Path("run") / "checkpoints" / "rl-000000" / "trainer.pt").is_file()


@pytest.mark.usefixtures("place")
def test_too_few_values_name_the_function() -> None:
    def short(prompts: list[str], completions: list[str]) -> list[float]:
        return [0.0] * (len(completions) - 1)

    with pytest.raises(RunError, match="reward function short returned 11 values for 12 completions"):
        assay.train(recipe("run"), reward=short, quiet=True)


class Growing:
    """An endless source whose prompts grow, past what could be looked at before the run."""

    size = None

    def __getitem__(self, index: int) -> Task:
        return Task(str(index), f"{index}" + "a" * (30 if index > 60 else 5), reference="1")


@pytest.mark.slow
@pytest.mark.usefixtures("place")
def test_a_prompt_that_does_not_fit_while_running_is_no_usage_error() -> None:
    sections = recipe("run", warmup={"steps": 0}, train={"steps": 100}, evaluate={"every": 0})
    with pytest.raises(RunError, match=r"a prompt of 33 tokens .* the model's context of 24"):
        assay.train(sections, tasks=Growing(), quiet=True)
    assert (Path("run") / "checkpoints").is_dir()
