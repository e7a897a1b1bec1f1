"""Numbers with tolerance and units."""
