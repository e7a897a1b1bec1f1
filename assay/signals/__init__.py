"""Signals: detached quantities that cost a model pass, declared by the parts that read them."""
