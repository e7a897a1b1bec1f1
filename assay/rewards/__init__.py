"""Rewards: what is a verdict worth?"""
