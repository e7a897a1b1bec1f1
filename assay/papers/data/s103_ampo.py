"""S103: where all responses fail, right ones of several teachers come in, those that the policy comprehends best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.method import Method
from assay.objectives.shaped import Shaped


@paper(
    "S103",
    "AMPO",
    arxiv="2510.02227",
    seams=["rollout", "select", "objective"],
    essentials={
        "only where no response is right": "test_only_where_all_fail",
        "a pool of several teachers' right responses": "test_teachers_write_the_pool",
        "comprehension: the true answer in the answer's place, its tokens' mean chance": "test_comprehension",
        "the best comprehended replace wrong responses drawn at random": "test_who_gives_way",
        "advantages over the mixed group, without the deviation": "test_advantages",
        "own tokens: dual clip; others': f(p) = p / (p + 0.1), no clip; a constant length": "test_the_loss",
        "it acts in training": "test_a_run_is_taught",
        "comprehended traces teach more than random ones": "test_comprehended_traces_teach_more",
    },
    choices=(
        "2 traces of a group, form 0.1 of the score",
        "form: whether the run's verifier finds an answer in the trace",
        "the run's reward; the released script's has a tenth for the form of one's own responses too",
        "the loss is a mean over samples of sums over tokens, divided by the longest response",
    ),
)
def ampo(
    teachers: Sequence[Any] = (),
    most: int = 2,
    traces: str = "traces",
    choose: Literal["comprehension", "shortest", "random"] = "comprehension",
    mean: Literal["arithmetic", "geometric"] = "arithmetic",
    form: float = 0.1,
    gamma: float = 0.1,
    max_length: int = 8192,
    entropy_weight: float = 1e-3,
) -> Method:
    """GRPO without the deviation, on groups that others' responses came into where all of one's own were wrong.

        c = mean_j pi(a_j | x, trace, a_<j),   score = 0.9 c + 0.1 form
        A_i = R_i - mean R;   own tokens: dual clip;   others': l = -p / (p + gamma) A

    Args:
        teachers, most, traces, choose, mean, form: see :class:`~assay.rollout.surgery.comprehended.Comprehended`.
        gamma: see :class:`~assay.objectives.shaped.Shaped`.
        max_length: of a response, by which sums over tokens are divided.
        entropy_weight: of the entropy bonus.

    Source: AMPO (arXiv 2510.02227) and its authors' code.
    """
    rollout = {
        "name": "comprehended",
        "most": most,
        "traces": traces,
        "choose": choose,
        "mean": mean,
        "form": form,
        "teachers": list(teachers),
    }
    objective = Shaped(
        gamma=gamma, dual_clip=10.0, aggregation="constant", max_length=max_length, entropy_weight=entropy_weight
    )
    return Method(rollout=rollout, credit=GRPO(normalise=False), objective=objective)


claims(
    Claim(
        paper="S103",
        text="Where unaided success is rare, a policy that is given the traces from which it best sees the answer "
        "is right "
        "more often, over training, than one that is given traces at random.",
        setting="styles",
        arms={
            name: {"name": "S103", "options": {"most": 1, "max_length": 6, **choose}}
            for name, choose in (
                ("comprehended", {}),
                ("random", {"choose": "random"}),
                ("shortest", {"choose": "shortest"}),
            )
        },
        better="comprehended",
        baseline="random",
        measure="area",
        sweep={"lr": (100.0, 300.0, 1000.0)},
    )
)
