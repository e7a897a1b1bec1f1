"""The tool calls that a response makes."""
