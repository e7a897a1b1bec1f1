"""World models to be written from a text: what a developer is told, gives, and is told by testers."""
