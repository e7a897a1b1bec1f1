"""Environments in processes of their own, so that one that hangs or dies takes nobody with it."""
