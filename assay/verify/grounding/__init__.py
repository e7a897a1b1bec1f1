"""Answers that rest on documents: quotations, citations, evidence, verbatim shares."""
