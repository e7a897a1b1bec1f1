"""Does a source support a claim? A cross-encoder over passages, trained by citations that people made."""
