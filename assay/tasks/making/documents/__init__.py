"""Tasks made from documents: passages that speak of the same, and questions that take several of them."""
