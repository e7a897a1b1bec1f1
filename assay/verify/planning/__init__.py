"""Plans in PDDL: a parser, a step-by-step validator and the verifier that uses them."""
