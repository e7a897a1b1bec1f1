"""Thousands of turns of anything: no sampled token is written out and read again, trainer and sampler agree on all.

The vocabulary is of bytes and of pieces of tool calls, so that a random model says broken characters, calls, broken
calls and thoughts; its turns are cut in the middle of any; and the world answers in any script, or in what looks like
the template's own marks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from tiny import tiny

from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.environments.tools import ToolEnvironment, ToolError, tool
from assay.policies.causal_lm import CausalLM
from assay.rollout.turns.multi_turn import MultiTurn
from assay.types import Ask, Episode, Group, Task

pytestmark = pytest.mark.usefixtures("one_thread")

SPECIAL = ["<pad>", "<|im_start|>", "<|im_end|>"]
CALLS = [
    '<tool_call>\n{"name": "echo", "arguments": {"text": "',
    '"}}\n</tool_call>',
    '<tool_call>\n{"name": "refuse", "arguments": {}}\n</tool_call>',
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
]
WORDS = [
    "héllo",
    "naïve café",
    "日本語のテキスト",
    "🙂🏳️‍🌈",
    "שלום",
    "e\u0301\u0327",
    "a\u200db",
    "\r\n\t ",
    "<|im_end|>",
    "<tool_call>",
    "0.1",
]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer(chat: bool) -> Any:
    """Return byte-level pairs learnt from a few lines, with the marks of chats and calls."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([" ".join(WORDS) * 3, "the cat sat on the mat, and then the other one"], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="<|im_end|>", clean_up_tokenization_spaces=False
    )
    fast.add_tokens(CALLS)
    fast.chat_template = CHATML if chat else None
    return fast


class Babel(ToolEnvironment):
    """Answers everything, in any script, and never ends."""

    def begin(self, task: Task, seed: int) -> None:
        self.words = random.Random(f"{task.id} {seed}")

    def line(self) -> str:
        return "".join(self.words.choice(WORDS) for _ in range(self.words.randrange(4)))

    @tool
    def echo(self, text: str) -> str:
        "Say it back."
        return f"{text}{self.line()}"

    @tool
    def refuse(self) -> str:
        "Do nothing."
        raise ToolError(self.line())

    def said(self, text: str) -> str:
        return self.line()

    def state_json(self) -> Any:
        return None


class Noting(HFEngine):
    """Remembers every response by what stood before it."""

    said: dict[bytes, Episode]

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        made = super().generate(requests)
        for request, [episode] in zip(requests, made, strict=True):
            self.said[f"{request.session} {len(episode.prompt)}".encode()] = episode
        return made


def conversations(engine: Noting, trajectories: int) -> Iterator[Group]:
    rng = np.random.default_rng(0)
    for most in (3, 8, 20):
        rollout = MultiTurn("guess", Sampling(most), turns=8)
        rollout.worlds.here = Babel  # type: ignore[method-assign, assignment]
        asks = [Ask(Task(str(i), WORDS[i % len(WORDS)] * (i % 3)), 4) for i in range(-(-trajectories // 12))]
        yield from rollout.collect(asks, engine, rng)


@pytest.mark.parametrize(
    ("turns", "chat"),
    [(480, True), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((480, False), (10_000, True)))],
)
def test_tokens_are_the_record(turns: int, chat: bool) -> None:
    tokens = tokenizer(chat)
    ends = tokens.convert_tokens_to_ids("<|im_end|>")
    # What is said is near to uniform over the vocabulary.
    model = tiny("grouped queries", vocab_size=len(tokens), max_position_embeddings=1024, eos_token_id=ends)
    engine = Noting(CausalLM(model, tokens))
    engine.said = {}
    count = again = cut = calls = broken = 0
    furthest = 0.0
    for group in conversations(engine, -(-turns // 8)):
        batch = Batch.from_groups([group])
        with torch.no_grad():
            logprobs = engine.policy.forward(batch).logprobs
        furthest = max(furthest, float((logprobs - batch.logprobs)[batch.mask].abs().max()))
        for episode in group.episodes:
            own = np.zeros(len(episode.tokens), dtype=bool)
            for turn in episode.turns:
                own[turn.start : turn.end] = True
                said = engine.said.pop(f"{episode.trajectory} {len(episode.prompt) + turn.start}".encode())
                ids = episode.tokens[turn.start : turn.end]
                assert np.array_equal(ids, said.tokens)
                assert np.array_equal(said.prompt, [*episode.prompt, *episode.tokens[: turn.start]])
                count, cut, calls = count + 1, cut + (said.stop == "length"), calls + len(turn.calls)
                broken += sum(bool(c.problem) for c in turn.calls)
                again += not np.array_equal(engine.encode_response(said.text, end=said.stop == "eos"), ids)
                for call in turn.calls:
                    assert turn.start <= call.start < call.end <= turn.end
                    if not call.problem:
                        assert "<tool_call>" in engine.decode(episode.tokens[call.start : call.end])
            assert np.array_equal(own, episode.mask)
    assert not engine.said, "every response is somewhere"
    print(
        f"{count} turns, {cut} cut, {calls} calls, {broken} of them malformed; {again} turns would be other tokens if "
        f"written out and read again; the trainer's log-probabilities differ by at most {furthest:.1e}"
    )
    assert count >= turns and furthest < 1e-4
    assert min(cut, count - cut, calls, broken, calls - broken, again) > count / 100
