"""Programs with what goes in and what comes out, any of which may be asked for: languages, proposals, the verifier."""
