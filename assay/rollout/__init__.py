"""Rollouts: how is a response made?"""
