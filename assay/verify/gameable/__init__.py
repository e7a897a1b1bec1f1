"""Responses to tasks that say how they are graded: what the stated metric pays, and what they are worth."""
