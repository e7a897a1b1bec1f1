"""Generation, verification and training ranks as Ray actors on the machines of a cluster (extra ``ray``)."""
