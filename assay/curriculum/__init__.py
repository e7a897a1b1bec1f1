"""Curricula: what do we ask next, how often, with which hint?"""
