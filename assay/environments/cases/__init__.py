"""Patients with images, and a knowledge base of their diseases that has to be searched."""
