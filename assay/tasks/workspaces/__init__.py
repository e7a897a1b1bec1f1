"""Work in a folder: what is asked, what is there, a service that may fail, and weighted checks on what is left."""
