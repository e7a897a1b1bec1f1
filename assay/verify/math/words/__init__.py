"""Values that words say: numbers, dates, times, quantities."""
