"""The engine over vLLM, in this process or behind its server, one concern a file.

vLLM takes long to import and may be missing, so it is imported where it is used.
"""
