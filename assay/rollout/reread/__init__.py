"""What a response is read again under, and attempts that are revised."""
