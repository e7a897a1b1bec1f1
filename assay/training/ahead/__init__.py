"""Generation beside the update: what is asked ahead, by which weights, and what makes up for their age."""
