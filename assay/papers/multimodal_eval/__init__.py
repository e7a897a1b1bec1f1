"""Papers of the family multimodal_eval."""
