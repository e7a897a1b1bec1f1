"""Solutions of several steps, in words and pictures, measured step by step against reference solutions."""
