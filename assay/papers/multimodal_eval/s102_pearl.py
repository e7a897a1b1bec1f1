"""S102: what there is to be seen is asked first; reasoning is learned as far as it was seen."""

from __future__ import annotations

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.credit.grpo import GRPO
from assay.credit.scaled.perception_gate import PerceptionGate
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rollout.reread.perceived import PerceivedFirst, checklist_of, perception_task
from assay.select.either_branch import EitherBranch
from assay.tasks.making.checklists.perception import PerceptionChecklists
from assay.tasks.making.recipe import pipeline
from assay.tasks.making.work import Pipeline
from assay.tasks.pictures.compared import Compared
from assay.verify.lists.short_answers import ShortAnswers

__all__ = [
    "Compared",
    "EitherBranch",
    "PerceivedFirst",
    "PerceptionGate",
    "ShortAnswers",
    "checklist_of",
    "pearl",
    "perception_task",
]


@paper(
    "S102",
    "PEARL",
    arxiv="2511.18437",
    seams=["tasks", "rollout", "verify", "reward", "select", "credit", "objective"],
    essentials={
        "the whole checklist is answered in one prompt, with the pictures, and scored by the mean": (
            "test_the_checklist_is_one_prompt"
        ),
        "what nobody sees anything of is not reasoned about": "test_who_sees_nothing_does_not_reason",
        "advantages of the two branches, each in its own group": "test_by_hand",
        "the gate: reasoning counts by min(mean seen, .5), detached; perception by .1": "test_by_hand",
        "the gate of the code: by max(mean seen, .5)": "test_the_gate_of_the_code",
        "both branches are learned from in one update": "test_both_branches_are_in_the_loss",
        "an item is kept where either branch varies": "test_either_branch_varies",
        "a model that sees writes the checklist from pictures, question and answer": "test_a_model_writes_checklists",
        "one command gives tasks with pictures theirs, and a run learns from it": "test_written_checklists_are_learned",
        "it trains a model that sees": "test_it_trains",
    },
    choices=(
        "the gate is the paper's min(mean seen, .5); its code clamps from below, which is floor = .5, cap = 1",
        "who sees nothing never reasons; in the code they do in three batches of ten, and a mean of .01 is nothing",
        "a line for each answer, compared as texts or numbers, of all that is asked; the code has tags, and divides by "
        "how many were answered",
        "what reasoning is worth is the verdict; in the code a tenth of it is for a thought and a box",
        "both branches have as many responses, and the loss is a mean over all: with items that nobody sees, "
        "perception has a larger share of it",
        "of a checklist that could not be judged nothing counts as seen",
        "two to five questions with answers of at most four words; the writer's words",
        "models, pictures and who writes their checklists are one's own; ViRL39K's, by GPT-4.1, are not published",
    ),
)
def pearl(cap: float = 0.5, weight: float = 0.1, max_tokens: int = 256, floor: float = 0.0) -> Method:
    """GRPO of two branches: a checklist of what is to be seen, and reasoning, gated by how much of it was seen.

        A_reason <- A_reason min(p, cap),    L = J(A_reason) + weight J(A_perceive)

    Tasks have ``meta["checklist"]``; ``tasks.source = "compared"`` draws some.

    Args:
        cap, weight, floor: see :class:`~assay.credit.scaled.perception_gate.PerceptionGate`.
        max_tokens: see :class:`~assay.rollout.reread.perceived.PerceivedFirst`.

    Source: PEARL (arXiv 2511.18437) and its authors' code: groups of 5, learning rate 1e-6, batches of 128, top-p .99,
    no KL term in its best runs, with Qwen2.5-VL-3B and 7B. The code clips between .8 and 1.28.
    """
    return Method(
        rollout={"name": "perceived", "max_tokens": max_tokens},
        credit=PerceptionGate(GRPO(), cap, weight, floor),
        select=EitherBranch(),
        objective=ClippedSurrogate(aggregation="sequence_mean"),
    )


@pipeline("S102")
def perception_checklists(least: int = 2, most: int = 5, words: int = 4, checked: str | None = None) -> Pipeline:
    """Tasks with pictures, and checklists of what is to be seen in them.

    ``assay tasks make S102 --seeds pictures.jsonl --model WRITER --out seen.jsonl``, by a model that sees; then
    ``assay train method=S102 tasks.source.name=made tasks.source.path=seen.jsonl``.

    Args:
        least, most, words, checked: see :class:`~assay.tasks.making.checklists.perception.PerceptionChecklists`.
    """
    return Pipeline("S102", [("checklists", PerceptionChecklists(least, most, words, checked))])


BRANCHES = {"name": "S102", "credit": {"name": "perception_gate", "weight": 1.0}}

claims(
    Claim(
        paper="S102",
        text="Where little is seen rightly and guessing pays, a branch that is rewarded for what is seen, with "
        "reasoning gated by it, leads to seeing sooner than rewards for the answer alone.",
        setting="perceiving",
        arms={"branches": BRANCHES, "answer": {"name": "grpo", "setting": {"group": 10}}},
        better="branches",
        baseline="answer",
        measure="early",
        sweep={"lr": (0.1, 0.3, 1.0)},
        unequal="what nobody sees is not reasoned about, which saves responses",
    ),
    Claim(
        paper="S102",
        text="With the gate reasoning comes to rest on what is seen more often than with the branch alone.",
        setting="perceiving",
        arms={
            "gated": BRANCHES,
            "ungated": {"name": "S102", "credit": {"name": "perception_gate", "weight": 1.0, "cap": 1.0}},
        },
        better="gated",
        baseline="ungated",
        measure="evidence",
        sweep={"lr": (0.1, 0.3)},
        name="cap",
        unequal="what nobody sees is not reasoned about, which saves responses",
    ),
)
