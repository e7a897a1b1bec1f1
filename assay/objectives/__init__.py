"""Objectives: what do we minimise?"""
