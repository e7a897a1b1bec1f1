"""What runs behind the wall: standard library only, because nothing else of assay is visible there."""
