"""Records: what runs, evaluations and audits leave on disk, whole or not at all."""
