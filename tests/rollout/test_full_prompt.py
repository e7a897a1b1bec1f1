"""What an ask shows: instruction, hint and question, of texts and chats."""

from __future__ import annotations

import numpy as np
import pytest

from assay.engines.base import Request, Sampling
from assay.rollout.recorded import Recorded
from assay.rollout.single_turn import SingleTurn, full_prompt
from assay.types import Ask, Episode, Prompt, Task

USER = {"role": "user", "content": "2+2="}


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("2+2=", "Be brief.\nSmall.\n2+2="),
        (
            (USER,),
            ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Small.\n2+2="}),
        ),
        (
            ({"role": "system", "content": "You add."}, USER),
            ({"role": "system", "content": "Be brief.\nYou add."}, {"role": "user", "content": "Small.\n2+2="}),
        ),
    ],
)
def test_the_instruction_stands_before_hint_and_question(prompt: Prompt, expected: Prompt) -> None:
    task = Task("t", prompt)
    assert full_prompt(Ask(task, 1, "Small.", "Be brief.")) == expected
    assert full_prompt(Ask(task, 1)) == prompt


class Noting:
    """An engine that notes what it is asked."""

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []

    def encode(self, prompt: Prompt) -> np.ndarray:
        self.prompts.append(prompt)
        return np.arange(3)

    def encode_response(self, text: str) -> np.ndarray:
        return np.arange(len(text))

    def generate(self, requests: list[Request]) -> list[list[Episode]]:
        self.prompts += [request.prompt for request in requests]
        return [[] for _ in requests]


def test_rollouts_show_it() -> None:
    ask, rng, engine = Ask(Task("t", "2+2=", solution="4"), 1, None, "Be brief."), np.random.default_rng(0), Noting()
    SingleTurn(Sampling(4)).collect([ask], engine, rng)  # type: ignore[arg-type]
    Recorded(Sampling(4)).collect([ask], engine, rng)  # type: ignore[arg-type]
    assert engine.prompts == ["Be brief.\n2+2="] * 2
