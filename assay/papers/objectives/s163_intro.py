"""S163: infer the rationale from the answer, token by token, by the forward divergence from the answer's view."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch, Loss
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.ops import IMPOSSIBLE, aggregate, masked_mean
from assay.rollout.templates import check_template, through_template
from assay.select.verdicts import OfVerdict
from assay.signals.base import Models, Signal, with_prompts

TEMPLATE = "{question}\n\nThe correct answer is {answer}. Explain step by step how to reach it."
View = Literal["policy", "reference"]


@paper(
    "S163",
    "InTRO",
    arxiv="2511.09865",
    seams=["select", "objective"],
    essentials={
        "a token's weight is its probability with the answer in the prompt, by its probability without": (
            "test_the_signal_weighs_its_candidates"
        ),
        "further candidates are drawn at every position of a sampled rationale": (
            "test_candidates_are_weighed_at_every_position_of_the_rationale_and_nowhere_else"
        ),
        "in expectation the gradient is that of the forward divergence from the answer's view": (
            "test_the_expected_gradient_is_that_of_the_divergence"
        ),
        "weights are clipped": "test_weights_are_clipped_and_an_impossible_posterior_weighs_nothing",
        "rationales that end in a wrong answer are left out; no reward or advantage is used": (
            "test_only_right_responses_with_a_reference_teach"
        ),
        "in training the policy comes to be what it is once it sees the answer": "test_it_finds_the_posterior",
    },
    choices=(
        "the template of the prompt with the answer",
        "the loss is a mean over the kept rationales, each a mean over its tokens and candidates",
        "the answer's view is under the weights of the step, without gradient; or the reference's, as an option",
    ),
)
def intro(n: int = 5, clip: float = 200.0, template: str = TEMPLATE, posterior: View = "policy") -> Method:
    """GRPO with its advantages replaced by weights that the policy gives itself when it is shown the answer.

        L = -mean_i 1 / (T_i n) sum_t sum_{m <= n} w_itm log pi(c_itm | x, z_<t)
        w_itm = min(pi(c_itm | x + y, z_<t) / pi(c_itm | x, z_<t), clip)

    z is a sampled rationale that the verifier found right (others are left out: that is all the verifier does), c_it1
    its own token t, c_it2 ... c_itn further tokens drawn from pi(. | x, z_<t), x + y the prompt with the reference
    answer written into it. w is constant, of the policy before the step's first update. In expectation over the
    candidates the gradient is that of KL(pi(. | x + y, z_<t) || pi(. | x, z_<t)) at every prefix: on the logits, p - q.

    Args:
        n: candidates at each position, the sampled token among them; at least 1. With 1 the mean over candidates is
            that of the sampled token alone.
        clip: largest weight.
        template: of the prompt with the answer, with ``{question}`` and ``{answer}`` (``task.reference``); of a chat,
            the last user message is put through it.
        posterior: whose view of the answer: the ``policy`` as it stands, or the ``reference`` it started from.

    A task without a reference, or one whose longer prompt leaves no room for the rationale, teaches nothing.

    Source: InTRO (arXiv 2511.09865). Its template is not known; the mean over the kept rationales, and the posterior
    under current weights, are choices.
    """
    return Method(select=OfVerdict("right"), objective=AnswerView(n, clip, template, posterior))


@dataclass(frozen=True, slots=True)
class AnswerWeights:
    """Signal ``answer_weights`` ``(N, T, n)``: w of :func:`intro`; leaves the candidates in ``signals["candidates"]``.

    Zero for samples that were not judged right, for tasks without a reference and outside responses.
    """

    n: int = 5
    clip: float = 200.0
    template: str = TEMPLATE
    posterior: View = "policy"

    name = "answer_weights"

    @property
    def models(self) -> tuple[str, ...]:
        return (self.posterior,)

    def __call__(self, batch: Batch, models: Models) -> Float[Tensor, "N T n"]:
        shape = (*batch.tokens.shape, self.n)
        candidates = torch.zeros(shape, dtype=torch.int64)
        weights = torch.zeros(shape, dtype=batch.logprobs.dtype)
        batch.signals["candidates"] = candidates
        room = getattr(models.policy, "context", math.inf)
        prompts, chosen = [], []
        for i, (task, episode, verdict) in enumerate(zip(batch.tasks, batch.episodes, batch.verdicts, strict=True)):
            if verdict.passed is not True or task.reference is None or not len(episode.tokens):
                continue
            prompt = models.encode(through_template(task.prompt, self.template, answer=task.reference))
            if len(prompt) + len(episode.tokens) <= room:
                prompts.append(prompt)
                chosen.append(i)
        if not chosen:
            return weights
        index = torch.tensor(chosen)
        work = batch.rows(index)
        drawn, name = self._draw(work, models), "candidate_logprobs"
        shown = with_prompts(work, prompts)
        work.signals = shown.signals = {"candidates": drawn}
        prior = models.quantities(work, {name})[name]
        posterior = models.quantities(shown, {name}, self.posterior)[name]
        # A candidate that was drawn is possible without the answer, so only the posterior may be minus infinity.
        ratio = (posterior - prior).clamp(max=math.log(self.clip)).exp()
        inside = torch.arange(drawn.shape[1]) < torch.tensor([len(e.tokens) for e in work.episodes])[:, None]
        candidates[index, : drawn.shape[1]] = drawn
        weights[index, : drawn.shape[1]] = torch.where(inside[..., None], ratio, 0)
        return weights

    def _draw(self, work: Batch, models: Models) -> Tensor:
        """Return the candidates ``(M, T, n)``, the sampled token first."""
        generator = torch.Generator().manual_seed(int(models.rng.integers(2**62)))
        drawn = work.tokens[..., None].repeat(1, 1, self.n)
        if self.n > 1:
            for rows in models.policy.micro_batches(work, models.token_budget):
                part = work.rows(rows)
                found = models.policy.candidates(part, self.n - 1, models.temperature, generator)
                drawn[rows, : found.shape[1], 1:] = found
        return drawn


@dataclass(frozen=True, slots=True)
class AnswerView:
    """The loss of :func:`intro`; advantages are not used.

    Raises:
        UsageError: ``n`` below 1, ``clip`` not above 0, or a template without ``{answer}``.
    """

    n: int = 5
    clip: float = 200.0
    template: str = TEMPLATE
    posterior: View = "policy"

    reads = "nothing"
    live = frozenset({"candidate_logprobs"})

    def __post_init__(self) -> None:
        if self.n < 1 or self.clip <= 0:
            raise UsageError(f"objective 'S163': needs n >= 1 and clip > 0, not {self.n} and {self.clip:g}")
        check_template(self.template, "answer", "objective 'S163'")

    @property
    def needs(self) -> frozenset[Signal]:
        return frozenset({AnswerWeights(self.n, self.clip, self.template, self.posterior)})

    def __call__(self, logprobs: Float[Tensor, "N T"], batch: Batch) -> Loss:
        weights = batch.signals["answer_weights"].to(logprobs.dtype)
        candidates = batch.live["candidate_logprobs"].clamp(min=IMPOSSIBLE)
        # A weight of 0 must not meet the gradient of an impossible token.
        loss = -(weights * torch.where(weights > 0, candidates, 0)).mean(-1)
        used = batch.mask & batch.active[:, None]
        mean = weights.mean(-1)
        metrics = {
            "intro/weight": float(masked_mean(mean, used)),
            "intro/shown": float(masked_mean((mean > 0).to(mean.dtype), used)),
            "intro/clipped": float(masked_mean((weights >= self.clip * (1 - 1e-6)).to(mean.dtype).mean(-1), used)),
        }
        return Loss(aggregate(loss, batch, "sequence_mean"), metrics)

    @property
    def summary(self) -> dict[str, str]:
        return {
            "ratio": "token, to the answer's view",
            "clip": f"at most {self.clip:g}",
            "aggregation": "sequence mean",
        }


claims(
    Claim(
        paper="S163",
        text="Where the policy knows better once it sees the answer, learning its own weights for tokens reaches right "
        "answers in fewer rollouts than GRPO's outcome advantage.",
        setting="answers",
        arms={
            "grpo": {"name": "grpo"},
            "intro": {"name": "S163", "objective": {"template": "{answer}"}},
        },
        better="intro",
        baseline="grpo",
        measure="area",
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
    ),
    Claim(
        paper="S163",
        name="mechanism",
        text="Learning its own weights for tokens brings the policy nearer to what it is once it sees the "
        "answer (forward divergence of the two) than GRPO does.",
        setting="answers",
        arms={"grpo": {"name": "grpo"}, "intro": {"name": "S163", "objective": {"template": "{answer}"}}},
        better="intro",
        baseline="grpo",
        measure="posterior",
        options={"tasks": 4, "steps": 100},
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
        tuning=(1000, 1001),
    ),
)
