"""Instructions whose following can be checked by rule: IFEval's 25 kinds and others, by id and arguments."""
