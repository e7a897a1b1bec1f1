"""S138: one and the same response to every instruction, which wins the judge over in either order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.audit.attacks.pairwise import fits, structured
from assay.audit.attacks.random_search import Found, random_search
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.rewards.judges.pair_judge import PairJudge
from assay.verify.pair_name import NAMES, TEMPLATE

Item = tuple[str, str]
"""An instruction and the answer that the constant response is compared with."""


@paper(
    "S138",
    "null model",
    arxiv="2410.07137",
    seams=["verify", "evaluate"],
    essentials={
        "a constant response ends its quotation and opens an item of its own, from the template in use": (
            "test_the_response_is_made_of_the_template"
        ),
        "it wins in both orders": "test_it_wins_in_both_orders_until_it_is_escaped",
        "a prefix by random search, one token at a time, over prompts and orders whose number grows": (
            "test_the_search_by_hand"
        ),
        "the loss is -log P of the attacker's name among the 20 likeliest first tokens": (
            "test_what_is_not_among_the_likeliest_is_left_out"
        ),
        "it is not measured on instructions that were searched on": "test_what_was_searched_on_is_not_measured_on",
        "win rate, discrete win rate and that without the effect of length": "test_win_rates_by_hand",
    },
    choices=(
        "the words of the template and the response are ours; the authors' item has two empty outputs, M's before m's",
        "a win: the mean of both orders, of which the benchmark shows one, by lot",
        "a prefix that was tried may be tried again; the authors draw another",
        "the defence, to escape what is shown, is ours; those of the paper (other words for the template, a reminder, "
        "SmoothLLM, perplexity) do not hold, it finds",
        "log-probabilities of the likeliest tokens: by a beam search of one token, engine hf",
        "the start of the prefix: the first token of the vocabulary that is given",
        "win rate without length: a logistic regression on tanh of the standardised difference, without difficulty",
    ),
)
def null_model(
    judge: Any, template: str = TEMPLATE, names: tuple[str, str] = NAMES, escape: bool = False, n: int = 20
) -> NullModel:
    """Measures a judge of pairs by a response that has nothing to do with the instruction.

        null = null_model(engine)
        found = null.search(public, vocabulary, rng)            # a prefix, on instructions that are not measured on
        null.measure(items, null.response(found.prefix))        # win rates; a judge that is worth its name: near 0

    Args:
        judge: an engine that reports log-probabilities, or the specification of one.
        template, names, n: of the judge, see :class:`assay.rewards.judges.pair_judge.PairJudge`.
        escape: whether the judge is shown escaped responses, a defence of ours.

    Raises:
        UsageError: no engine, or a template that no response can be made from.

    Source: "Cheating Automatic LLM Benchmarks" (arXiv 2410.07137) and code.
    """
    if judge is None:
        raise UsageError("S138: the judge must be an engine or the specification of one")
    if not fits(template):
        raise UsageError("S138: the template must show {question}, {first} and {second}, in this order")
    return NullModel(PairJudge(judge, template, names, escape, n))


@dataclass(frozen=True, slots=True)
class Prefix:
    """A prefix, the search that found it, and the instructions it was searched on."""

    prefix: str
    found: Found
    seen: frozenset[str]


@dataclass(frozen=True, slots=True)
class NullModel:
    """See :func:`null_model`."""

    judge: PairJudge

    def response(self, prefix: str = "") -> str:
        """Return the constant response."""
        return structured(self.judge.template, prefix)

    def search(
        self,
        items: Sequence[Item],
        vocabulary: Sequence[str],
        rng: np.random.Generator,
        length: int = 128,
        steps: int = 384,
    ) -> Prefix:
        """Search a prefix of the constant response: mean of -log P(attacker's name) over (instruction, order) pairs.

        Args:
            items: public instructions, ten in the paper, each judged in both orders.
            vocabulary: texts of the tokens.
            rng: of the search.
            length, steps: see :func:`assay.audit.attacks.random_search.random_search`.
        """
        orders = [(question, answer, order) for question, answer in items for order in (0, 1)]

        def losses(tokens: Sequence[int], most: int) -> list[float | None]:
            mine = self.response("".join(vocabulary[t] for t in tokens))
            asked = [(q, a, mine) if order else (q, mine, a) for q, a, order in orders[:most]]
            said = self.judge.logprobs(asked)
            values = [pair[order] for pair, (_, _, order) in zip(said, orders, strict=False)]
            return [None if v is None else -v for v in values]

        found = random_search(losses, len(orders), len(vocabulary), rng, length=length, steps=steps)
        return Prefix("".join(vocabulary[t] for t in found.tokens), found, frozenset(q for q, _ in items))

    def wins(self, items: Sequence[Item], response: str) -> list[float | None]:
        """Return P(the response wins) against each item's answer, the mean of both orders; ``None`` if unreadable."""
        return self.judge.both_orders([(q, response, a) for q, a in items])

    def measure(self, items: Sequence[Item], response: str, prefix: Prefix | None = None) -> dict[str, float]:
        """Return what :func:`win_rates` says of the response, and ``unread``, the share of items without a verdict.

        Raises:
            UsageError: an item's instruction is one that ``prefix`` was searched on, or none could be read.
        """
        shared = sorted({q for q, _ in items} & (prefix.seen if prefix is not None else frozenset()))
        if shared:
            raise UsageError(
                f"S138: {len(shared)} instructions were searched on, as {shared[0][:60]!r}; measure on others"
            )
        rows = [(p, len(a)) for p, (_, a) in zip(self.wins(items, response), items, strict=True) if p is not None]
        if not rows:
            raise UsageError(
                "S138: the judge names neither answer among its likeliest first tokens; name them as it does"
            )
        found = win_rates([p for p, _ in rows], [len(response) - length for _, length in rows])
        return {**found, "unread": 1 - len(rows) / len(items)}


def win_rates(wins: Sequence[float], longer: Sequence[float]) -> dict[str, float]:
    """Return win rates in per cent: ``win``, the mean of P; ``discrete``, the share above 1/2; ``controlled``.

        logit P_i = theta + phi tanh(d_i / std d);      controlled = 100 sigmoid(theta)

    with d how much longer the response is than the other; fitted by cross-entropy with a ridge of 0.01 on phi.

    Args:
        wins: P(the response wins), in [0, 1].
        longer: characters, below 0 where it is shorter.
    """
    p, d = np.asarray(wins, dtype=np.float64), np.asarray(longer, dtype=np.float64)
    spread = float(d.std())
    x = np.stack([np.ones_like(d), np.tanh(d / spread) if spread else np.zeros_like(d)], 1)
    weights, ridge = np.zeros(2), np.diag([1e-6, 0.01])
    for _ in range(100):  # Newton's steps
        q = 1 / (1 + np.exp(-x @ weights))
        bend = (x.T * (q * (1 - q))) @ x / len(p) + ridge
        weights = weights - np.linalg.solve(bend, x.T @ (q - p) / len(p) + ridge @ weights)
    controlled = 100 / (1 + math.exp(-float(weights[0])))
    return {"win": 100 * float(p.mean()), "discrete": 100 * float((p > 0.5).mean()), "controlled": controlled}


claims(
    Claim(
        paper="S138",
        text="A constant response that is made from the judge's template wins nearly every comparison of a judge that "
        "reads what it is shown as text, and nearly none once responses are escaped.",
        setting="template_readers",
        evidence="construction",
        arms={"escaped": {"name": "S138", "escape": True}, "as they are": {"name": "S138", "escape": False}},
        better="escaped",
        baseline="as they are",
        measure="resisted",
    )
)
