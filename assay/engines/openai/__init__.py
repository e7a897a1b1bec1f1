"""The engine that asks a server speaking OpenAI's protocol, one concern a file."""
