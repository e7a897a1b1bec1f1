"""Programs, judged by running them: see :class:`assay.verify.code.verifier.Code`."""
