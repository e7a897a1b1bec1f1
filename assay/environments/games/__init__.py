"""Games on small boards, shown and played as text."""
