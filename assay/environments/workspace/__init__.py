"""Work in a folder, by commands, by a program of one's own, and with a service that may fail."""
