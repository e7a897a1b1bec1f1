"""S098: where in the weights RLVR learns: diagnostics over two checkpoints, and training confined to a region."""

from __future__ import annotations

from typing import Literal

import torch

from assay.batch import Batch
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.method import Method
from assay.objectives.masked import Masked
from assay.ops import kl_estimate, masked_mean
from assay.policies.base import Policy
from assay.policies.regions import Region
from assay.signals.base import Models


@paper(
    "S098",
    "The Path Not Taken",
    arxiv="2511.08567",
    seams=["objective", "evaluate"],
    essentials={
        "gate I: the divergence of the policy after from the one before": (
            "test_the_shift_between_two_policies_against_its_exact_value"
        ),
        "gate II: normalised spectral shift, and rotation of the leading singular directions": "test_a_known_angle",
        "gate II: what share of the principal and of the low entries changed, against chance": (
            "test_overlap_against_chance"
        ),
        "gate III: sparsity of the update as bfloat16 sees it": "test_what_counts_as_unchanged",
        "runs agree on where they update, and a model in another basis does not": (
            "test_a_rotated_model_is_the_same_function_in_another_basis"
        ),
        "training confined to a region, principal or not, bit for bit": (
            "test_outside_the_region_weights_stay_bit_for_bit_with_weight_decay_on"
        ),
        "the safe region: what is off principal or small": "test_the_safe_region_by_hand",
        "adapters that begin as the principal directions, against those that begin as nothing": (
            "test_a_run_with_adapters_resumes_and_its_checkpoint_is_compared_whole"
        ),
    },
    choices=(
        "the principal rank is 0.05 of a matrix's smaller side",
        "the default region is what is off principal, as many entries as the principal ones; the paper's safe region, "
        "about 0.7 of all, follows training of all entries more closely",
        "overlap is the share of a region that changed, against that of all entries; the paper's, the share of changes "
        "in the region against the region's size, is the same multiple of chance",
        "embeddings, biases and norms are frozen where a region is trained, unless asked for",
    ),
)
def path_not_taken(
    region: Region = "off_principal",
    share: float = 0.5,
    rank: float = 0.05,
    others: Literal["frozen", "trained"] = "frozen",
) -> Method:
    """GRPO that may change only a region of each weight matrix, as the matrix was when RL began.

        w  <-  w - lr (M * Adam(M * g) + decay M * w)
        principal(W):  the ``share`` of entries that are largest in |W_k|, W_k the rank-k part of W's SVD
        M:  off_principal = not principal;  low = the ``share`` smallest in |W|;  safe = either of these;
            principal, high, random as controls

    Three gates of the theory: RL's step is anchored (its KL is small even without a KL term), it goes off the principal
    directions where the spectrum hardly moves, and bfloat16 hides the small rest, which looks like sparsity. To see it:

        from assay.diagnose.weight_change import agreement, by_kind, weight_change
        by_kind(weight_change("path/to/base", "runs/run/checkpoints/rl-000100"))   # gates II and III
        policy_shift(after, before, batch)                                         # gate I

    which give ||sigma' - sigma|| / ||sigma|| (``spectral_shift``), the angles between the leading k singular directions
    (``rotation``), the share of entries with |w' - w| <= 0.001 max(|w|, |w'|) (``sparsity``), and how much of the
    principal and of the low region changed against the share of all (``principal``, ``low``, ``random``).

    That the model's own geometry decides where, a control shows: the same model in another basis, of which different
    entries change.

        from assay.policies.rotated import rotate_values
        policy = CausalLM.load(ModelConfig(source="path/to/base"), 0)
        rotate_values(policy.module)
        policy.save(Path("path/to/rotated"))                                       # train on this

    Adapters that begin as the leading directions of each matrix (PiSSA), and can turn little else, should learn less
    well from RL than those that begin as nothing. Any objective takes either; what they did to the weights is seen as
    above, and in ``assay diagnose``.

        assay train recipe.toml model.lora.rank=16 model.lora.start=pissa          # against model.lora.start=lora

    Args:
        region: M.
        share: of a matrix's entries that a region takes.
        rank: k as a share of the matrix's smaller side.
        others: whether embeddings, biases and norms are trained.

    Source: "The Path Not Taken" (arXiv 2511.08567), with its share and its tolerance; its k is not known.
    """
    return Method(objective=Masked("clip", region, share, rank, others))


def policy_shift(
    after: Policy, before: Policy, batch: Batch, temperature: float = 1.0, token_budget: int = 8192
) -> float:
    """Estimate KL(after || before) in nats per token from responses that ``after`` sampled on held-out prompts.

    Mean over learnable tokens of exp(d) - d - 1, d = log pi_before - log pi_after: never negative, unbiased.

    Args:
        after, before: two policies over the same tokens.
        batch: responses sampled from ``after`` at ``temperature``.
        temperature: divides the logits.
        token_budget: tokens of a pass.
    """
    models = Models(after, before, temperature, token_budget)
    found = [models.quantities(batch, {"logprobs"}, m)["logprobs"] for m in ("policy", "reference")]
    with torch.no_grad():
        return float(masked_mean(kl_estimate(found[0], found[1]), batch.mask))


claims(
    Claim(
        paper="S098",
        text="Half of the entries of every matrix are enough for RL if they are the off-principal ones, not if they "
        "are the principal ones.",
        setting="network",
        arms={
            "off principal": {"name": "S098"},
            "principal": {"name": "S098", "objective": {"region": "principal"}},
            "random": {"name": "S098", "objective": {"region": "random"}},
            "all": {"name": "grpo"},
        },
        better="off principal",
        baseline="principal",
        measure="final",
        sweep={"lr": (1e-3, 3e-3, 1e-2)},
    ),
    Claim(
        paper="S098",
        text="Adapters that begin as nothing learn better from RL than as many that begin as the leading directions of "
        "each matrix.",
        setting="network",
        name="adapters",
        arms={kind: {"name": "grpo", "setting": {"adapters": kind, "rank": 4}} for kind in ("lora", "pissa")},
        better="lora",
        baseline="pissa",
        measure="final",
        sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)},
    ),
)
