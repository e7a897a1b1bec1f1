"""Three harnesses: programs that ask a model over the chat protocol and work in the folder that they are started in.

- ``bare``: one answer, whose scripts are run;
- ``react``: a loop of calls and what came of them, until nothing is called;
- ``planned``: the loop with a plan in a file, failures that are asked again, and an end that is not taken at a word.
"""
