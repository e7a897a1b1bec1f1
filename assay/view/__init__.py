"""A local web application over what runs, evaluations, comparisons and audits leave on disk; it changes nothing."""
