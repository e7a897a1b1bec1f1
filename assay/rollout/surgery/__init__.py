"""Groups that are changed once they are judged: asked anew with a hint, mended or extended."""
