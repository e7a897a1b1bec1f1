"""A full RL step on long prompts, each shared by a group, of assay against TRL's GRPOTrainer on the same work.

Prompts of 512 tokens, groups of 16 responses of at most 32 tokens. assay computes a prompt once, for its group, when it
generates and when it learns; GRPOTrainer computes it once per response. Both sides as in ``step_vs_trl.py``: the same
weights, prompts, sampling, reward, optimiser, in processes of their own that take turns, float32 on the CPU.

    python benchmarks/shared_prompts.py [--cases nano smollm2] [--steps 12]

Needs the extra ``bench`` (TRL); case smollm2 needs models/SmolLM2-135M-Instruct.Q4_1.gguf and the extra ``gguf``.
Exits 1 if a ratio is too low.
"""

from __future__ import annotations

from step_vs_trl import GGUF, Case, main

CASES = {
    "nano": Case({"hidden": 128, "layers": 3, "heads": 4, "context": 1024}, 4, 16, 32, 4.0, length=512),
    "smollm2": Case(str(GGUF), 1, 16, 32, 4.0, "words", alone=True, length=512),
}

if __name__ == "__main__":
    main(CASES, __doc__, __file__)
