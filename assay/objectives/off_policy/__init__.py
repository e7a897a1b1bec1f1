"""Objectives that tell what was sampled as it is trained from what another hand, or another prompt, brought about."""
