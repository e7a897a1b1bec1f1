"""Problems that a policy hardly ever solves unaided, and what helps it."""
