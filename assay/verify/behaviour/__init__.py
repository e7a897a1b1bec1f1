"""World models as programs, judged by what they do: steps compared, episodes played, plans tried in the true world."""
