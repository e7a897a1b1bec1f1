"""Any program that speaks the chat protocol, played and learnt from token for token."""
