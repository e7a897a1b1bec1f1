"""Credit: which tokens earned the reward?"""
