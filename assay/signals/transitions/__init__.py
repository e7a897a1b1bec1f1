"""Learning from steps that any earlier policy took: what is kept of them, and critics whose targets follow slowly."""
