"""A function of factors, as a model may write one: whether a turn went right or left, stopped, and how long it was."""

import numpy as np


def evaluation_func(obs):
    own, last = obs[:, 1:2], obs[:, 6:7]
    return [own / 4, last, *(obs[:, k : k + 1] for k in range(8, obs.shape[1])), np.ones((len(obs), 1))]
