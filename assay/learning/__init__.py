"""Learning: one step, from asks to update, in memory."""
