"""How far thoughts are from a flow of good ones."""
