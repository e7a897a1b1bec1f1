"""Tasks made from tasks: operators that ask models, filters, and a pipeline of them that can be stopped at any time."""
