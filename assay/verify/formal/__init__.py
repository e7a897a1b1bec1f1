"""Programs, proofs and circuits judged by the tools of their own field, in the sandbox."""
