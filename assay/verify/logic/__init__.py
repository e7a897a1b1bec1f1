"""Answers that are judged by a solver: SAT, SMT, answer sets, Prolog."""
