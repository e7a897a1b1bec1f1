"""TRL trains on an environment of ours, through the class that is exported for it."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.environments.exported.trl import as_trl, rows, verdict
from assay.policies.nano import NanoConfig, nano_model, nano_tokenizer

trl = pytest.importorskip("trl", reason="trl is not installed: make peers")


SHAPE = NanoConfig(hidden=16, layers=1, heads=2, context=4096, alphabet="".join(map(chr, range(32, 127))) + "\n")


def known_tokenizer() -> Any:
    """A tokenizer with a template that TRL knows how to read calls from."""
    tokenizer: Any = nano_tokenizer(SHAPE)
    tokenizer.chat_template = (Path(trl.__file__).parent / "chat_templates/qwen3.jinja").read_text()
    return tokenizer


def settings(folder: Path) -> Any:
    """One step of four rollouts."""
    return trl.GRPOConfig(
        output_dir=str(folder),
        max_steps=1,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=8,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        learning_rate=1e-2,
        bf16=False,
    )


@pytest.mark.parametrize("environment", ["search", "guess"])
def test_it_trains_one_step(environment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import Dataset

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    tokenizer = known_tokenizer()
    torch.manual_seed(0)
    scores: list[float | None] = []

    def judged(**given: Any) -> list[float | None]:
        found = verdict(**given)
        scores.extend(found)
        # Told apart by chance, so that there is something to learn.
        return [None if score is None else score + i % 2 for i, score in enumerate(found)]

    model = nano_model(SHAPE, len(tokenizer), 0)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    trainer = trl.GRPOTrainer(
        model,
        args=settings(tmp_path),
        processing_class=tokenizer,
        environment_factory=as_trl(environment),
        reward_funcs=judged,
        train_dataset=Dataset.from_list(rows(environment, 4)),
    )
    trainer.train()
    assert scores == [0.0] * 4 and trainer.state.global_step == 1
    assert any(not torch.equal(before[name], weight) for name, weight in trainer.model.named_parameters())


def test_the_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import Dataset

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    page = (Path(__file__).parents[2] / "docs/environments.md").read_text(encoding="utf-8")
    [code] = [c for c in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "GRPOTrainer(" in c]
    tokenizer: Any = known_tokenizer()
    config = settings(tmp_path)
    trainer = functools.partial(trl.GRPOTrainer, args=config, processing_class=tokenizer)
    names: dict[str, Any] = {"GRPOTrainer": trainer, "Dataset": Dataset, "model": nano_model(SHAPE, len(tokenizer), 0)}
    exec(code, names)
    names["trainer"].train()
    assert names["trainer"].state.global_step == 1
