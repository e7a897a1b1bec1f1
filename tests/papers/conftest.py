"""Makes what the tests of papers share importable from the folders of their families."""
