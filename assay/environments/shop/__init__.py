"""A database with a policy compiled into it: what the rules forbid is refused, what they entail happens."""
