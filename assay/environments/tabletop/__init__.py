"""A table where plans of skills are carried out by a hand that may fail, step by step, with someone watching."""
