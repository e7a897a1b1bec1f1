"""What an agent meets, in words: annotated by a model beside the run, and paid for by what is learned from that."""
