"""Strategies that sample responses one by one or in parallel and take one."""
