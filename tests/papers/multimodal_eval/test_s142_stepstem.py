"""StepSTEM: alignments by hand, what a model makes of two steps, windows of pictures, and a file that is measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import Dinov2Config, Dinov2Model, ResNetConfig, ResNetModel

from assay import catalogue, cli
from assay.engines.base import Request
from assay.errors import UsageError
from assay.evaluate.traces.alignment import DISTINCT, fused_score, image_score, local_score, text_score
from assay.evaluate.traces.encoder import Network
from assay.evaluate.traces.likeness import BEFORE, BETWEEN, Likeness, roll_out
from assay.evaluate.traces.regions import CELLS, WHOLE, colours, region_likeness
from assay.evaluate.traces.score import COVERED, Against, TraceScore
from assay.evaluate.traces.trace import Step, Trace, read_traces
from assay.lab.settings import load
from assay.media import Picture
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.types import Episode, pictures


def test_the_worked_alignment() -> None:
    """Two of three steps go with references in order: .9 + .7; in any order .9 + .8 + .7."""
    likeness = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.8], [0.0, 0.7, 0.4]])
    assert text_score(likeness) == pytest.approx(1.7 / 3)
    assert text_score(likeness, ordered=False) == pytest.approx(2.4 / 3)
    assert text_score(likeness[:1]) == pytest.approx(0.3) and text_score(np.zeros((0, 4))) == 0
    assert text_score(np.array([[0.4, 0.6]])) == pytest.approx(0.3)
    assert local_score(0.5, 0.8, 3, 1) == pytest.approx(0.575) and local_score(0.5, 0.0, 2, 0) == 0.5
    assert fused_score(0.6, 0.8) == pytest.approx(0.707107, abs=1e-6)
    assert fused_score(0.6, 0.8, 0.25) == pytest.approx(np.sqrt(0.75 * 0.36 + 0.25 * 0.64))


def test_the_worked_pictures() -> None:
    """Three references, the first two best shown by one picture: coverage .8, two different of three."""
    likeness = np.array([[0.9, 0.2], [0.8, 0.1], [0.3, 0.7]])
    assert image_score(likeness) == pytest.approx(0.746667, abs=1e-6) and DISTINCT == 0.2
    assert image_score(likeness, distinct=0.0) == pytest.approx(0.8)
    assert image_score(np.eye(3)) == 1 and image_score(np.zeros((2, 0))) == 0


@given(st.integers(2, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_swapped_steps_never_score_higher(m: int, n: int, seed: int) -> None:
    """Of a trace that follows the references: likeness falls off with the distance in order."""
    rng = np.random.default_rng(seed)
    kept = np.sort(rng.integers(0, n, m))
    likeness = rng.random(m)[:, None] * (np.arange(n) == kept[:, None])
    i, j = rng.permutation(m)[:2]
    swapped = likeness.copy()
    swapped[[i, j]] = likeness[[j, i]]
    assert text_score(swapped) <= text_score(likeness) + 1e-12
    assert text_score(swapped, ordered=False) == pytest.approx(text_score(likeness, ordered=False))


NANO: dict[str, Any] = {"source": "nano", "nano": {"hidden": 16, "layers": 2, "heads": 2, "context": 128}}


@pytest.fixture(scope="module")
def policy() -> CausalLM:
    torch.manual_seed(0)
    made = CausalLM.load(ModelConfig(**NANO), 0)
    with torch.no_grad():
        for weight in made.model.parameters():
            weight.mul_(3)
        made.model.lm_head.weight.mul_(0.3)  # certain of something, and of nothing for sure
    return made


def logs(policy: CausalLM, before: str, step: str) -> list[float]:
    """Log-probabilities of a step's tokens, one pass for each."""
    ids = [policy.encode_response(text, end=False).tolist() for text in (before, step)]
    out = []
    for t in range(len(ids[1])):
        tokens = torch.tensor([ids[0] + ids[1][:t]])
        out.append(float(policy.model(input_ids=tokens, use_cache=False).logits[0, -1].log_softmax(-1)[ids[1][t]]))
    return out


def test_the_gain_is_that_of_the_model(policy: CausalLM) -> None:
    steps, known = ["90-4", "-47-"], ["1+2=3", "12"]  # what the model says after each
    before = policy.model.config._attn_implementation
    found = Likeness(policy)(steps, known)
    assert policy.model.config._attn_implementation == before and policy.model.training
    policy.model.set_attn_implementation("eager")
    with torch.no_grad():
        wanted = [
            [
                np.exp(np.mean(logs(policy, f"{BEFORE}{g}{BETWEEN}", p))) - np.exp(np.mean(logs(policy, BEFORE, p)))
                for g in known
            ]
            for p in steps
        ]
    policy.model.set_attn_implementation(before)
    assert found == pytest.approx(np.clip(wanted, 0, 1), abs=1e-5)
    assert np.array(wanted).round(2).tolist() == [[0.1, -0.07], [0.0, 0.2]]
    fits = policy.context - len(policy.encode_response(f"{BEFORE}2{BETWEEN}", end=False))
    assert Likeness(policy)(["1" * fits], ["2"]).shape == (1, 1)
    for step, reference in (("1" * (fits + 1), "2"), ("1" * 80, "2" * 80)):
        with pytest.raises(UsageError, match="does not fit into the model's context of 128"):
            Likeness(policy)([step], [reference])
    with pytest.raises(UsageError, match="or is empty"):
        Likeness(policy)([""], ["2"])
    with pytest.raises(UsageError, match="tau 0 must be above 0"):
        Likeness(policy, tau=0.0)
    plain = Likeness(policy)
    assert (plain.form, plain.tau) == ("gain", 0.3) and Likeness(policy)([], known).shape == (0, 2)


def test_attention_is_rolled_out(policy: CausalLM) -> None:
    """Two tokens, two layers: [[1, 0], [.25, .75]] after [[1, 0], [.5, .5]], with I half of each."""
    first, second = torch.tensor([[[1.0, 0.0], [0.5, 0.5]]]), torch.tensor([[[1.0, 0.0], [0.25, 0.75]]])
    rolled = roll_out([first, second])
    assert rolled.tolist() == [[1, 0], [0.125 + 0.875 * 0.25, 0.875 * 0.75]]
    heads = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    assert roll_out([heads]).tolist() == roll_out([first]).tolist() == [[1, 0], [0.25, 0.75]]
    eye = torch.eye(3)[None]
    assert torch.equal(roll_out([eye, eye]), torch.eye(3))
    assert roll_out([torch.rand(2, 5, 5).softmax(-1) for _ in range(3)]).sum(-1).tolist() == pytest.approx([1] * 5)

    measure = Likeness(policy, "rollout", tau=0.01)
    [[found]] = measure(["90-4"], ["1+2=3"])
    texts = (BEFORE, "1+2=3", BETWEEN, "90-4")
    pieces = [policy.encode_response(text, end=False).tolist() for text in texts]
    start, whole = len(pieces[0]), [token for piece in pieces for token in piece]
    before = policy.model.config._attn_implementation
    policy.model.eval()
    policy.model.set_attn_implementation("eager")
    with torch.no_grad():
        out = policy.model(input_ids=torch.tensor([whole]), output_attentions=True, use_cache=False)
    policy.model.set_attn_implementation(before)
    policy.model.train()
    mass = roll_out([layer[0] for layer in out.attentions])[-len(pieces[3]) :, start : start + len(pieces[1])].sum(-1)
    p = np.exp(logs_of(out.logits[0], whole, len(pieces[3])))
    w = (mass / 0.01).softmax(-1).numpy()
    assert found == pytest.approx(float((w * p).sum()), abs=1e-5) and 0.01 < found < 1


def logs_of(logits: torch.Tensor, whole: Sequence[int], last: int) -> np.ndarray:
    every = logits.log_softmax(-1)[:-1].gather(-1, torch.tensor(whole[1:])[:, None])[:, 0]
    return every[-last:].numpy()


def test_windows_of_another_picture() -> None:
    """A box of the left half of what is red above and blue below is found in the other picture's right half."""
    reference = np.zeros((2, 2, 4))
    reference[0, 0, :2] = reference[1, 1, :2] = 1.0
    other = np.zeros((2, 2, 4))
    other[0, :, 2:] = 1.0
    left = (((0.0, 0.0, 0.5, 0.5), 1.0),)
    assert region_likeness(reference, other, left) == pytest.approx(1.0)
    lower = (((0.0, 0.5, 0.5, 0.5), 1.0),)
    assert region_likeness(reference, other, lower) == 0
    assert region_likeness(reference, other, (*left, *lower)) == pytest.approx(0.5)
    weighted = ((left[0][0], 3.0), (lower[0][0], 1.0))
    assert region_likeness(reference, other, weighted) == pytest.approx(0.75)
    # Red and blue alike in the whole, against red alone: the cosine of (1, 1) and (1, 0).
    assert region_likeness(reference, other) == pytest.approx(np.sqrt(0.5)) and len(WHOLE) == 1
    # A box beyond the edge, or of less than a cell, is the nearest cell.
    assert region_likeness(reference, other, (((0.99, 0.99, 0.5, 0.5), 1.0),)) == 0
    assert region_likeness(reference, other, (((0.3, 0.0, 0.01, 0.01), 1.0),)) == pytest.approx(1.0)
    assert region_likeness(-reference, other) == 0
    # A box ends where its width says: the lower middle cell of three, and the right two thirds, whose mean is (2, 1).
    map_ = np.zeros((2, 2, 3))
    map_[0, 1, 1], map_[1, 1, 2], map_[0, :, 0] = 2.0, 1.0, 9.0
    assert region_likeness(map_, map_[:, 1:, 1:2], (((0.34, 0.5, 0.33, 0.5), 1.0),)) == pytest.approx(1.0)
    sides = np.array([[[2.0, 0.0]], [[0.0, 1.0]]])
    assert region_likeness(map_, sides, (((0.34, 0.5, 0.66, 0.5), 1.0),)) == pytest.approx(1.0)
    assert region_likeness(map_, sides[:, :, ::-1] * [[[1.0]], [[2.0]]], (((0.34, 0.5, 0.66, 0.5), 1.0),)) < 0.96


def test_colours_of_cells() -> None:
    image = pytest.importorskip("PIL.Image", reason="pip install assay[vision]").new("RGB", (70, 35), (255, 255, 255))
    image.paste((200, 0, 100), (0, 0, 35, 35))
    found = colours(image)
    assert found.shape == (27, CELLS, CELLS) and found.sum(0) == pytest.approx(np.ones((7, 7)))
    assert found[2 * 9 + 0 + 1, :, 0].tolist() == [1] * 7 and found[26, :, 6].tolist() == [1] * 7
    assert found[19, 0, 3] == 0.5


class Saying:
    """A judge that finds a point made where its words stand in the solution, and says nothing of one."""

    def encode(self, prompt: Any) -> Any:
        raise NotImplementedError

    encode_response = decode = encode

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        none = np.zeros(0, dtype=np.int64)
        self.asked += requests
        out = []
        for request in requests:
            point, _, rest = str(request.prompt).partition("makes:\n")[2].partition("\n\nA solution:\n")
            said = "?" if point == "hm" else f"\\boxed{{{point in rest.partition(chr(10) * 2)[0]}}}"
            out.append([Episode(none, none, none > 0, None, said, "eos")])
        return out


def words(given: Sequence[str], reference: Sequence[str]) -> np.ndarray:
    """The share of a reference's words that a step has."""
    rows = [[len({*g.split()} & {*r.split()}) / len({*r.split()}) for r in reference] for g in given]
    return np.array(rows).reshape(len(given), len(reference))


def test_points_are_judged_and_fused() -> None:
    """Of two points one is made, the third is not judged: overall .5; local .75; fused sqrt((.5625 + .25) / 2)."""
    solution = (Step("a b", point="a b"), Step("c d", point="x"), Step("e", point="hm"), Step("f"))
    trace = Trace("1", "?", (Step("a b"), Step("c"), Step("f g")), "7", (solution,), "7")
    judge = Saying()
    found = TraceScore(words, judge)(trace)
    assert found.best == Against(0.625, None, 0.625, 0.5, pytest.approx(np.sqrt((0.625**2 + 0.25) / 2)))
    assert (found.gap, found.right, found.id) == (0, True, "1")
    assert [r.sampling.max_tokens for r in judge.asked] == [512] * 3 and judge.asked[0].sampling.temperature == 0
    assert str(judge.asked[0].prompt) == COVERED.replace("{question}", "a b").replace("{response}", "a b\nc\nf g\n7")
    alone = TraceScore(words)(trace)
    assert alone.best.overall is None and alone.best.fused == 0.625
    none = Trace("1", "?", trace.steps, "8", ((Step("a", point="hm"),),), "7")
    assert TraceScore(words, Saying())(none).best.overall is None and TraceScore(words)(none).right is False
    assert TraceScore(words)(Trace("1", "?", trace.steps, "8", (solution,))).right is None


class Looking(Saying):
    """A judge that finds a picture shown where its bytes are those of another one; says nothing of blue."""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        made = super().generate(requests)
        for request, each in zip(requests, made, strict=True):
            if not isinstance(request.prompt, str):
                first, *others = [picture.data for picture in pictures(request.prompt)]
                each[0] = replace(each[0], text="" if first == b"blue" else f"\\boxed{{{first in others}}}")
        return made


def test_pictures_are_points() -> None:
    """Of three pictures one is shown, one is not and one is not judged, and a point in words is made: 2 of 3."""
    box = (((0.25, 0.5, 0.1, 0.2), 1.0), ((0.0, 0.0, 1.0, 1.0), 0.5))
    steps = [Step(image=Picture(name), boxes=box) for name in (b"red", b"green", b"blue")]
    given = (Step("a b"), Step(image=Picture(b"black")), Step(image=Picture(b"red")))
    trace, judge = Trace("1", "Draw.", given, "7", ((*steps, Step("a b", point="a b")),)), Looking()
    measure = TraceScore(words, judge, encode=lambda image: np.ones((1, 1, 1)), sees=True)
    assert measure.covered(trace, trace.solutions[0]) == pytest.approx(2 / 3)
    _, asked, *_ = judge.asked
    assert [p.data for p in pictures(asked.prompt)] == [b"red", b"black", b"red"]
    text = asked.prompt[0]["content"]
    assert text.startswith("<image>\n<image>\n<image>\nA problem:\nDraw.") and "a b\n7" in text
    assert "[0.25, 0.5, 0.1, 0.2]; [0, 0, 1, 1]" in text and asked.sampling.temperature == 0
    bare = Trace("1", "Draw.", (Step("a b"),), "", trace.solutions)
    assert measure.covered(bare, bare.solutions[0]) == 0.25, "without a picture none is shown, and nobody is asked"
    assert TraceScore(words, Looking()).covered(trace, trace.solutions[0]) == 1
    assert measure.covered(trace, (Step("c"),)) is None


def test_maps_by_a_network(tmp_path: Path) -> None:
    """A random ResNet: its map is what it says of the picture stretched and scaled; a model without maps is refused."""
    pillow = pytest.importorskip("PIL.Image", reason="pip install assay[vision]")
    torch.manual_seed(0)
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 12], "depths": [1, 1], "layer_type": "basic"}
    model = ResNetModel(ResNetConfig(**sizes)).eval()
    model.save_pretrained(tmp_path / "net")
    made = TraceScore(words, encode=str(tmp_path / "net")).encode
    image = pillow.new("RGB", (50, 30), (255, 0, 128))
    found = made(image)
    scaled = (np.array([1, 0, 128 / 255]) - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    shown = torch.tensor(scaled, dtype=torch.float32)[None, :, None, None].expand(1, 3, 224, 224)
    with torch.no_grad():
        assert found == pytest.approx(model(pixel_values=shown).last_hidden_state[0].numpy(), abs=1e-5)
    assert found.shape == (12, 28, 28) and region_likeness(found, found) == pytest.approx(1)
    with pytest.raises(UsageError, match="no network"):
        Network(str(tmp_path / "none"))
    Dinov2Model(Dinov2Config(hidden_size=8, num_hidden_layers=1, num_attention_heads=2)).save_pretrained(tmp_path / "d")
    with pytest.raises(UsageError, match="makes no map"):
        Network(str(tmp_path / "d"))(image)


def test_solutions_in_the_benchmark_s_layout(tmp_path: Path) -> None:
    """Ten steps in the order of their numbers, boxes with weights, and what the file says of question and answer."""
    steps: dict[str, Any] = {
        f"step_{k}": {"modality": "text", "content": f"say {k}", "key_point": f"point {k}"} for k in (10, 1)
    }
    box = {"bbox": [0.1, 0.2, 0.3, 0.4], "weight": 0.5}
    steps["step_2"] = {"modality": "image", "content": "plot.png", "important_bbox": [box]}
    steps["step_3"] = {"modality": "image", "content": "input.png"}
    asked = [{"modality": "text", "content": "Which?"}, {"modality": "image", "content": "input.png"}]
    held = {"question": asked, "solution": steps, "final_answer": {"modality": "text", "answer": "A>D"}}
    (tmp_path / "che").mkdir()
    (tmp_path / "che" / "1.json").write_text(json.dumps(held), encoding="utf-8-sig")
    (tmp_path / "che" / "2.json").write_text(json.dumps({**held, "final_answer": {"modality": "image", "answer": "x"}}))
    rows = [
        {"id": 1, "steps": [{"text": "a"}], "answer": "A>D", "solutions": ["che/1.json", [{"text": "own"}]]},
        {"id": 2, "steps": [], "question": "Mine?", "reference": "B", "solutions": ["che/1.json"]},
        {"id": 3, "steps": [], "solutions": ["che/2.json"]},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    first, second, third = read_traces(path)
    assert (first.question, first.reference) == ("Which?", "A>D") and first.solutions[1] == (Step("own"),)
    one, plot, shown, last = first.solutions[0]
    assert (one.text, one.point, last.text, last.point) == ("say 1", "point 1", "say 10", "point 10")
    assert plot.image == Picture(tmp_path / "che" / "plot.png") and plot.boxes == (((0.1, 0.2, 0.3, 0.4), 0.5),)
    assert shown.boxes == tuple(WHOLE)
    assert (second.question, second.reference, third.reference) == ("Mine?", "B", None)
    path.write_text(json.dumps({**rows[0], "solutions": ["che/none.json"]}))
    with pytest.raises(UsageError, match=r"line 1: .*none.json: No such file"):
        read_traces(path)


def test_the_best_reference_counts() -> None:
    first, second = (Step("a b c"), Step("d")), (Step("a"), Step("e"))
    trace = Trace("1", "?", (Step("a"), Step("d")), "", (first, second))
    found = TraceScore(words)(trace)
    assert found.best.text == pytest.approx((1 / 3 + 1) / 2) and found.gap == pytest.approx(2 / 3 - 1 / 2)
    again = TraceScore(words)(Trace("1", "?", trace.steps, "", (first, second, first)))
    assert again.best == found.best


def test_pictures_and_words_by_their_steps(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image", reason="pip install assay[vision]")
    for name, colour in (("red", (255, 0, 0)), ("blue", (0, 0, 255))):
        pillow.new("RGB", (14, 14), colour).save(tmp_path / f"{name}.png")
    rows = [
        {
            "id": 1,
            "question": "q",
            "steps": [{"text": "a"}, {"image": "red.png"}],
            "solutions": [
                [
                    {"text": "a b", "point": "p"},
                    {"image": "red.png", "boxes": [[0, 0, 0.5, 1, 2]]},
                    {"image": "blue.png"},
                ]
            ],
        },
        {"id": 2, "steps": [], "answer": 5, "reference": "5", "kind": "number", "solutions": [[{"image": "red.png"}]]},
    ]
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join([json.dumps(rows[0]), "", json.dumps(rows[1])]))
    first, second = read_traces(path)
    assert first.solutions[0][1].boxes == (((0, 0, 0.5, 1), 2),) and first.solutions[0][2].boxes == tuple(WHOLE)
    found = TraceScore(words)(first).best
    # One of two pictures is shown, by one that serves both: coverage .5, and 1 of 2 different.
    assert (found.text, found.image) == (0.5, pytest.approx(0.5 * (0.8 + 0.2 * 0.5)))
    assert found.local == pytest.approx((0.5 + 2 * 0.45) / 3)
    assert TraceScore(words, distinct=0.0)(first).best.image == pytest.approx(0.5)
    other = TraceScore(words)(second)
    assert (other.best.text, other.best.image, other.best.local, other.right) == (None, 0, 0, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no traces"),
        ("[]", "line 1: no trace with steps and solutions"),
        ('{"id": 1, "steps": []}', "line 1: no trace with steps and solutions: no 'solutions'"),
        ('{"id": 1, "steps": [], "solutions": []}', "a solution without steps"),
        ('{"id": 1, "steps": [], "solutions": [[]]}', "a solution without steps"),
        ('\n{"id": 1, "steps": [{"text": " "}], "solutions": [[{"text": "a"}]]}', "line 2: .*a step without words"),
        ('{"id": 1, "steps": [{"image": "a", "boxes": [[0, 0, 0, 1, 1]]}], "solutions": [[{"text": "a"}]]}', "a box"),
        ('{"id": 1, "steps": [{"image": "a", "boxes": [[0, 0, 1, 1, 0]]}], "solutions": [[{"text": "a"}]]}', "a box"),
    ],
)
def test_what_is_no_file_of_traces(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_traces(path)
    with pytest.raises(UsageError, match="No such file"):
        read_traces(tmp_path / "none")


def test_it_measures_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"id": "1", "steps": [{"text": "1+2=3"}], "answer": "3", "reference": "3"}
    row["solutions"] = [[{"text": "1+2=3", "point": "3"}, {"text": "3"}], [{"text": "4"}]]
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(json.dumps({**row, "id": str(i)}) for i in range(2)))
    recipe = tmp_path / "r.toml"
    recipe.write_text("[model]\nsource = 'nano'\n[model.nano]\nhidden = 16\nlayers = 1\nheads = 2\ncontext = 1024\n")

    def command(*more: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(["eval", str(recipe), "--traces", str(path), *more])
        out = capsys.readouterr()
        return int(ended.value.code or 0), out.out, out.err

    code, out, err = command("--json")
    assert not code, err
    told = json.loads(out)
    assert len(told["traces"]) == 2 and told["means"]["right"] == 1.0
    assert 0 <= told["means"]["text"] <= 1 and told["means"]["gap"] >= 0 and "image" not in told["means"]
    code, out, _ = command("--scorer", "rollout")
    assert not code and "against the best reference" in out and "fused" in out
    code, _, err = command("--scorer", "rolout")
    assert code == 2 and "gain or rollout, not 'rolout'; did you mean 'rollout'?" in err
    code, _, err = command("--samples", "2")
    assert code == 2 and "--traces measures steps of solutions, where --samples would say nothing" in err


def test_the_setting() -> None:
    setting = load("shuffled_traces", {"traces": 60})
    ordered, any_ = (setting.run({"ordered": flag}, 0, Path()) for flag in (True, False))
    assert (
        ordered["told"] > 0.8 and any_["told"] == 0.5 and ordered["margin"] > 0.1 and any_["margin"] == pytest.approx(0)
    )
    assert ordered["rollouts"] == 120
    made = catalogue.make("S142", likeness=words)
    assert isinstance(made, TraceScore) and made.judge is None and made.distinct == 0.2
