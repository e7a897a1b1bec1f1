"""Responses read again under another prompt, one that shows more than the student saw."""
