"""Small controlled experiments: does what a paper claims show, in minutes, with seeds paired and rollouts equal?"""
