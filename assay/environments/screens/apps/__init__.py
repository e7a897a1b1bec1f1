"""The apps: pages of widgets, what touching them does, and goals as data."""
