"""Inference: what do we do at test time?"""
