"""Tables of the documentation, made from the parts themselves."""
