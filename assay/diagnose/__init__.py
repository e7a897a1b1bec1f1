"""Diagnosis: what changed between two checkpoints?"""
