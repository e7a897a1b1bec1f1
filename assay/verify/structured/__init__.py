"""Structured output: JSON, YAML, TOML, CSV, XML and text of a given pattern."""
