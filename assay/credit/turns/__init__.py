"""Credit for turns: which of the things that were done earned what came of them?"""
