"""A patient's record is read piece by piece, and a ranked differential kept with the evidence for it."""
