"""The policy learns from what is replayed of any policy's steps, and not from what it has just done."""
