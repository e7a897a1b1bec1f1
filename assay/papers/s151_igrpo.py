"""S151: refine one's own best draft; answer without drafts afterwards."""

from __future__ import annotations

from typing import Literal

from assay.lab.claim import Claim, claims
from assay.method import Method
from assay.papers import paper
from assay.rollout.best_draft import TEMPLATE


@paper("S151", "iGRPO", arxiv="2602.09000", seams=["rollout"])
def igrpo(
    drafts: float = 0.5,
    template: str = TEMPLATE,
    max_draft: int | None = None,
    ties: Literal["first", "random"] = "first",
) -> Method:
    """GRPO on responses to the prompt with the policy's own best draft in it.

        d* = argmax_j R(d_j),   d_1 ... d_N ~ pi_old(. | x)
        o_1 ... o_G ~ pi_old(. | x'),   x' = template(x, d*)
        A_i = (R(o_i) - mean R(o)) / (std R(o) + epsilon), with ratios pi(o_i | x') / pi_old(o_i | x')

    Drafts have no loss and are in no baseline; the same verifier judges both. N + G is the group size of the run, so
    that a step costs what it costs in GRPO. Only the prompt changes: every credit and objective can be used with it, as
    rollout ``best_draft``. Evaluation asks the plain question.

    Args:
        drafts: N / (N + G).
        template: of x', with ``{question}`` and ``{draft}``.
        max_draft: tokens of the draft that are shown, its last ones; ``None`` for all.
        ties: show the ``first`` or a ``random`` one of the best drafts.

    See :class:`~assay.rollout.best_draft.BestDraft` for the rest.

    Source: iGRPO (arXiv 2602.09000). Its template and what it cuts from long drafts are not known; these are choices.
    """
    return Method(
        rollout={"name": "best_draft", "drafts": drafts, "template": template, "max_draft": max_draft, "ties": ties}
    )


claims(
    Claim(
        paper="S151",
        text="Where a right draft in the prompt helps, learning from refinements of the best draft improves single "
        "answers to hard questions more than learning from plain answers, at equal rollouts.",
        setting="drafts",
        arms={
            "grpo": {"name": "grpo"},
            "igrpo": {"name": "S151", "rollout": {"template": "{question}/0/{draft}"}},
        },
        better="igrpo",
        baseline="grpo",
        measure="area",
        sweep={"lr": (0.3, 1.0, 3.0)},
    ),
    Claim(
        paper="S151",
        name="mechanism",
        text="Learning from refinements of the best draft makes a policy that is right in more different "
        "ways, success and spread together, than learning from plain answers.",
        setting="drafts",
        arms={"grpo": {"name": "grpo"}, "igrpo": {"name": "S151", "rollout": {"template": "{question}/0/{draft}"}}},
        better="igrpo",
        baseline="grpo",
        measure="breadth",
        options={"right": 4},
        sweep={"lr": (0.3, 1.0, 3.0, 10.0)},
        tuning=(1000, 1001),
    ),
)
