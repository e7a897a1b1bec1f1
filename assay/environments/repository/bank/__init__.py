"""The modules that packages are made of: plain code without imports of anything but the standard library."""
