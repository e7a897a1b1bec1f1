"""Dialogues of several turns of a user, each with a checklist of what is to be done in it."""
