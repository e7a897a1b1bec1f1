"""Models that see pictures: packed, shared, cached and continued, they say what transformers' own pass says."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from policies.sighted import ALPHABET, KINDS, NANO, asked, parts, picture, sighted

from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.errors import RunError, UsageError
from assay.media import MARK, Picture
from assay.policies.attention import packed
from assay.policies.loading import ModelConfig
from assay.policies.pictures import album
from assay.policies.pictures.album import FIRST, PLACES, Album, ids, numbers
from assay.policies.pictures.vision_lm import VisionLM
from assay.policies.policy import load_policy
from assay.types import Ask, Episode, Group, Prompt, Task

pytest.importorskip("PIL", reason="pip install assay[vision]")

PROMPTS: list[Prompt] = [
    "no picture at all",
    asked(f"what is this {MARK}?", picture(0)),
    asked(f"{MARK}or{MARK}, which?", picture(0), picture(1, 64, 32)),
    asked(f"{MARK} and", picture(2, 20, 90)),
]


def episode(policy: VisionLM, prompt: Prompt, response: Sequence[int]) -> Episode:
    tokens = np.asarray(response, dtype=np.int64)
    size = len(tokens)
    logprobs = np.zeros(size, dtype=np.float32)
    return Episode(policy.encode(prompt), tokens, np.ones(size, dtype=bool), logprobs, "", "eos")


def batch_of(policy: VisionLM, prompts: Sequence[Prompt], responses: Sequence[Sequence[Sequence[int]]]) -> Batch:
    return Batch.from_groups(
        [
            Group(Ask(Task(str(i), prompt), len(many)), tuple(episode(policy, prompt, r) for r in many))
            for i, (prompt, many) in enumerate(zip(prompts, responses, strict=True))
        ]
    )


def responses(seed: int, *lengths: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(5, 40, n).tolist() for n in lengths]


def own(policy: VisionLM, tokens: np.ndarray, response: int) -> torch.Tensor:
    """Log-probabilities of the last tokens by the model's own forward pass, with its own attention and positions."""
    words = torch.from_numpy(tokens[-response:])[:, None]
    return distributions(policy, tokens)[-response - 1 : -1].gather(-1, words)[:, 0]


def distributions(policy: VisionLM, tokens: np.ndarray) -> torch.Tensor:
    """Log-probabilities of what follows each token."""
    whole = torch.from_numpy(tokens)[None]
    seen = whole >= FIRST
    shown = numbers(tokens)
    inputs: dict[str, Any] = {}
    if shown:
        every = [policy.album.processed(number) for number in shown]
        if policy.model.config.model_type == "idefics3":  # a row of tiles, as its processor lays out one prompt's
            inputs = {k: torch.cat([one[k] for one in every], 1) for k in every[0]}
        else:
            inputs = {k: torch.cat([one[k] for one in every]) for k in every[0]}
    if policy.axes:
        inputs["mm_token_type_ids"] = seen.int()
    policy.decoder.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            words = whole.masked_fill(seen, policy.reader.token)
            logits: torch.Tensor = policy.model(input_ids=words, use_cache=False, **inputs).logits[0]
    finally:
        policy.decoder.set_attn_implementation(packed.NAME)
    return logits.log_softmax(-1)


@pytest.mark.parametrize("kind", KINDS)
def test_log_probabilities_are_transformers_own(kind: str) -> None:
    policy = sighted(kind)
    batch = batch_of(policy, PROMPTS, [responses(i, 3, 7, 1) for i in range(4)])
    with torch.no_grad():
        found = policy.forward(batch).logprobs
    for row, e in zip(found, batch.episodes, strict=True):
        expected = own(policy, np.concatenate([e.prompt, e.tokens]), len(e.tokens))
        torch.testing.assert_close(row[: len(e.tokens)], expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_picture_matters(kind: str) -> None:
    policy = sighted(kind)
    [said] = responses(0, 8)
    blank = Picture.of(np.zeros((32, 48, 3), dtype=np.uint8))
    prompts = [asked(f"what is{MARK}?", shown) for shown in (picture(0), blank)]
    with torch.no_grad():
        one, other = policy.forward(batch_of(policy, prompts, [[said], [said]])).logprobs
    assert float((one - other).abs().max()) > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_sampled_is_what_is_learned_from(kind: str) -> None:
    policy = sighted(kind)
    engine = HFEngine(policy)
    requests = [Request(p, 3, Sampling(max_tokens=9), seed) for seed, p in enumerate(PROMPTS)]
    groups = [
        Group(Ask(Task(str(i), r.prompt), r.n), tuple(e))
        for i, (r, e) in enumerate(zip(requests, engine.generate(requests), strict=True))
    ]
    batch = Batch.from_groups(groups)
    with torch.no_grad():
        now = policy.forward(batch).logprobs
    torch.testing.assert_close(now[batch.mask], batch.logprobs[batch.mask], rtol=0, atol=1e-4)
    assert not any(MARK in e.text for e in batch.episodes)


@pytest.mark.parametrize("kind", KINDS)
def test_the_likeliest_response_is_the_models_own(kind: str) -> None:
    policy = sighted(kind)
    prompt = policy.encode(PROMPTS[2])
    [[made]] = HFEngine(policy).generate([Request(PROMPTS[2], 1, Sampling(max_tokens=24, temperature=0.0), 0)])
    # What stands for a picture may be sampled as any other word, but the model's own pass then looks for the picture.
    words = list(itertools.takewhile(lambda token: token != policy.reader.token, made.tokens.tolist()))
    likeliest = distributions(policy, np.concatenate([prompt, words]).astype(np.int64)).argmax(-1)
    assert len(words) > 1 and likeliest[len(prompt) - 1 : -1].tolist() == words


def test_positions_have_three_axes_where_the_model_has_them() -> None:
    """A picture of 32 by 48 pixels is 2 by 3 positions at one time; words go on after its longer side."""
    policy = sighted("qwen2_vl")
    prompt = policy.encode(asked(f"ab{MARK}c", picture(0)))
    at = policy.places(prompt)
    assert at is not None and at.tolist() == [
        [0, 1, 2, 3, 3, 3, 3, 3, 3, 6],
        [0, 1, 2, 3, 3, 3, 4, 4, 4, 6],
        [0, 1, 2, 3, 4, 5, 3, 4, 5, 6],
    ]
    assert policy.places(policy.encode("abc")) is None
    assert sighted("llava").places(sighted("llava").encode(PROMPTS[1])) is None


def test_continuations_are_scored_as_responses_are() -> None:
    policy = sighted("qwen2_vl")
    [said, other] = responses(3, 6, 4)
    prompts = [PROMPTS[2], PROMPTS[0]]
    batch = batch_of(policy, prompts, [[said], [said]])
    with torch.no_grad():
        found = policy.continuations(
            batch, [[2, 6], [0]], [[np.asarray(other), np.asarray(other[:1])], [np.asarray(other)]]
        )
        expected = policy.forward(batch_of(policy, prompts, [[said[:2] + other, said + other[:1]], [other]])).logprobs
    torch.testing.assert_close(found[0, 0], expected[0, 2:6])
    torch.testing.assert_close(found[0, 1, 0], expected[1, 6])
    torch.testing.assert_close(found[1, 0], expected[2, :4])


def test_a_conversation_goes_on_from_what_is_kept_also_after_another_picture() -> None:
    policy = sighted("qwen2_vl")
    engine = HFEngine(policy)
    first = engine.opening(list(asked(f"see {MARK}", picture(0))), ())
    sampling = Sampling(max_tokens=5)
    from assay.engines.tokens import Tokens

    [[a]] = engine.generate([Request(Tokens(first), 1, sampling, 0, session="s")])
    bridge = engine.bridge(list(asked(f"and {MARK}?", picture(1, 64, 32))), a.stop == "eos")
    second = np.concatenate([first, a.tokens, bridge])
    [[b]] = engine.generate([Request(Tokens(second), 1, sampling, 1, session="s")])
    expected = own(policy, np.concatenate([second, b.tokens]), len(b.tokens))
    assert b.logprobs is not None
    torch.testing.assert_close(torch.from_numpy(b.logprobs), expected, rtol=0, atol=1e-4)
    # As one response in which the second picture stands, it is learned from at the same places.
    tokens = np.concatenate([a.tokens, bridge, b.tokens])
    whole = Episode(first, tokens, np.ones(len(tokens), dtype=bool), None, "", "eos")
    with torch.no_grad():
        found = policy.forward(Batch.from_groups([Group(Ask(Task("t", PROMPTS[1]), 1), (whole,))])).logprobs[0]
    torch.testing.assert_close(found[-len(b.tokens) :], expected, rtol=0, atol=1e-4)


def test_gradients_reach_the_tower_unless_it_is_frozen() -> None:
    for freeze in (False, True):
        policy = VisionLM(*deepcopy(parts("llava")), freeze=freeze)
        policy.forward(batch_of(policy, PROMPTS[1:2], [responses(0, 4)])).logprobs.sum().backward()
        learned = {name.split(".")[1] for name, p in policy.module.named_parameters() if p.grad is not None}
        assert ("language_model" in learned) and ("vision_tower" in learned) != freeze
        assert ("multi_modal_projector" in learned) != freeze


def test_gradients_are_the_same_where_they_are_checkpointed() -> None:
    found = []
    for checkpointed in (False, True):
        config = ModelConfig(nano=NANO, gradient_checkpointing=checkpointed)
        policy = load_policy(config)
        inner = policy.decoder.layers[0].mlp
        passes: list[int] = []
        inner.register_forward_pre_hook(lambda *_, passes=passes: passes.append(1))
        policy.forward(batch_of(policy, PROMPTS[1:2], [responses(0, 4)])).logprobs.sum().backward()  # type: ignore[arg-type]
        assert len(passes) == 1 + checkpointed
        found.append([p.grad for p in policy.module.parameters()])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*found, strict=True))


def test_a_picture_is_processed_once_and_seen_once_in_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = VisionLM(*parts("qwen2_vl"))
    processed: list[Picture] = []
    passes: list[int] = []
    process, look = policy.album.process, policy._features
    monkeypatch.setattr(policy.album, "process", lambda p: processed.append(p) or process(p))
    monkeypatch.setattr(policy, "_features", lambda found: passes.append(len(found)) or look(found))
    shown = picture(7, 32, 32)
    prompts = [asked(f"what is {MARK}?", shown), asked(f"where is {MARK}?", shown)]
    batch = batch_of(policy, prompts, [responses(0, 5, 6, 7), responses(1, 5, 6)])
    assert processed == [shown] and passes == [1]  # to count its positions
    policy.forward(batch)
    assert processed == [shown] and passes == [1, 1]
    other = batch_of(policy, [asked(f"{MARK}", picture(8, 32, 32))], [responses(0, 3)])
    assert len(processed) == 2 and passes == [1, 1], "the sizes are known already"
    policy.forward(other)
    assert passes == [1, 1, 1]


def test_prompts_that_differ_in_their_pictures_differ() -> None:
    policy = sighted("qwen2_vl")
    one, same, other = (policy.encode(asked(f"{MARK}?", picture(seed))) for seed in (0, 0, 1))
    assert one.tolist() == same.tolist() and len(one) == len(other) and one.tolist() != other.tolist()
    assert (one < FIRST).tolist() == [True, *[False] * 6, True]
    assert policy.decode(one) == "?"


def test_ids_of_a_picture() -> None:
    """A one, 45 bits of the digest, 16 of the place: as worked out by hand for the number 2^45 + 3."""
    number = (1 << 45) + 3
    assert ids(number, 3).tolist() == [2305843009213890560, 2305843009213890561, 2305843009213890562]
    assert FIRST == 2**61 and (number << PLACES) == 2**61 + 3 * 65536
    twice = np.concatenate([[5], ids(number, 3), [6], ids(number, 3), ids(number + 1, 1)])
    assert numbers(twice) == [number, number, number + 1]
    with pytest.raises(UsageError, match="takes 70000 positions, more than 65536"):
        ids(number, 70000)


def test_a_method_that_leaves_pictures_out_is_refused() -> None:
    policy = sighted("qwen2_vl")
    batch = batch_of(policy, ["what is this?"], [responses(0, 3)])
    batch.tasks = [Task("cat", PROMPTS[1])]
    with pytest.raises(UsageError, match="task cat has pictures, but is asked without them"):
        policy.forward(batch)


def test_two_pictures_of_one_number_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    album = Album(lambda p: {})
    album.number(Picture(b"a"))
    monkeypatch.setattr(Picture, "digest", property(lambda self: bytes(8) + self.source))
    album.number(Picture(b"b"))
    with pytest.raises(RunError, match="two pictures have the same number"):
        album.number(Picture(b"c"))


def test_what_was_never_shown_is_not_made_up() -> None:
    policy, blind = sighted("qwen2_vl"), VisionLM(*parts("qwen2_vl"))
    batch = batch_of(policy, PROMPTS[1:2], [responses(0, 3)])
    blind.forward(batch)  # the task has it
    batch.tasks = [Task("0", "words only")]
    with pytest.raises(RunError, match="never shown"):
        VisionLM(*parts("qwen2_vl")).forward(batch)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (asked("no mark", picture(0)), "0 marks '<image>' for 1 pictures: 'no mark'"),
        (asked(f"{MARK}{MARK}", picture(0)), "2 marks '<image>' for 1 pictures"),
        ((*asked(MARK, picture(0)), {"role": "user", "content": f"say {MARK}"}), "1 pictures have 2 placeholders"),
    ],
)
def test_marks_and_pictures_have_to_agree(messages: Prompt, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        sighted("qwen2_vl").encode(messages)


def test_a_chat_template_writes_the_places() -> None:
    model, tokenizer, processor = parts("qwen2_vl")
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role[0] }}:{% for c in m.content %}"
        "{% if c.type == 'image' %}<image>{% else %}{{ c.text }}{% endif %}{% endfor %}.{% endfor %}"
    )
    policy = VisionLM(model, tokenizer, processor)
    prompt = policy.encode(({"role": "system", "content": "look"}, *asked(f"a{MARK}b", picture(0))))
    assert policy.decode(prompt) == "s:look.u:ab." and int((prompt >= FIRST).sum()) == 6
    before = policy.decode(prompt[: int(np.flatnonzero(prompt >= FIRST)[0])])
    assert before == "s:look.u:a"


def test_it_is_written_and_read_again(tmp_path: Path) -> None:
    """A folder of transformers' own layout; its image processor is enough where a processor for videos is missing."""
    policy = sighted("qwen2_vl")
    policy.save(tmp_path)
    again = load_policy(ModelConfig(source=str(tmp_path)))
    assert isinstance(again, VisionLM)
    batches = [batch_of(p, PROMPTS, [responses(i, 4) for i in range(4)]) for p in (policy, again)]
    with torch.no_grad():
        one, other = policy.forward(batches[0]).logprobs, again.forward(batches[1]).logprobs
    assert torch.equal(one, other)
    again.load_weights(tmp_path)
    twin = again.frozen(tmp_path)
    with torch.no_grad():
        assert torch.equal(twin.forward(batches[1]).logprobs, one)


def test_refusals_are_one_line() -> None:
    nano = {"nano": {"alphabet": ALPHABET, "hidden": 32, "heads": 2, "layers": 1, "vision": {"hidden": 32}}}
    with pytest.raises(UsageError, match="models that see pictures are not quantised here"):
        load_policy(ModelConfig.model_validate({**nano, "quantise": "nf4"}))
    text = load_policy(ModelConfig.model_validate({"nano": {**nano["nano"], "vision": None}}))
    with pytest.raises(UsageError, match="which this model does not see"):
        text.encode(PROMPTS[1])
    sighted, picture = load_policy(ModelConfig.model_validate(nano)), Picture.of(np.zeros((16, 16, 3), np.uint8))
    for between, fits in (("", False), ("\n", True), (" and ", True)):
        asked = ({"role": "user", "content": f"{MARK}{between}{MARK}a?", "images": (picture, picture)},)
        if fits:
            assert len(sighted.encode(asked)) > 4
        else:
            with pytest.raises(UsageError, match="side by side for one"):
                sighted.encode(asked)
    for wrong, said in (
        ({"hidden": 24}, "does not divide into four heads"),
        ({"pixels": 15}, "fewer than two patches"),
    ):
        with pytest.raises(ValueError, match=said):
            ModelConfig.model_validate({"nano": {"vision": wrong}})


def test_a_model_that_sees_nothing_is_refused() -> None:
    model, tokenizer, processor = parts("llava")
    torch.nn.init.zeros_(model.model.multi_modal_projector.linear_2.weight)
    with pytest.raises(UsageError, match="cannot be shown pictures here: a picture changes nothing"):
        VisionLM(model, tokenizer, processor)


def test_pictures_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(album, "KEPT", 10)
    kept = Album(lambda p: {"pixels": torch.zeros(2)})
    first, second, third = (kept.number(Picture(bytes([i] * 4))) for i in range(3))
    with pytest.raises(RunError, match="never shown"):
        kept.processed(first)
    for number in (second, third, second):  # 8 bytes each when processed, of which one fits
        assert kept.processed(number)["pixels"].shape == (2,)
    assert kept.number(Picture(bytes(4))) == first and kept.processed(first)
