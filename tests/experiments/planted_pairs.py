"""Pairs whose words tell a topic: what was hidden can be guessed only by who sees its own pair, and no other."""

import numpy as np

from experiments.corpora import SentencePair
from experiments.masked_pairs import PretrainingData

TOPICS, WORDS, FIRST = 6, 4, 5  # words after the five special tokens


def planted(n_train=2500, n_held_out=200):
    """Both segments are of one topic, if the second follows; of two topics, if it is random."""
    return PretrainingData(_pairs(n_train, 0), _pairs(n_held_out, 1), np.arange(FIRST + TOPICS * WORDS), ("planted",))


def _pairs(number, seed):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(number):
        first = rng.integers(TOPICS)
        random = rng.random() < 0.5
        second = (first + rng.integers(1, TOPICS)) % TOPICS if random else first
        sizes = rng.integers(3, 12, 2)
        one, two = (
            FIRST + topic * WORDS + rng.integers(0, WORDS, size)
            for topic, size in zip((first, second), sizes, strict=True)
        )
        types = np.repeat(np.array([0, 1], np.int32), [len(one) + 2, len(two) + 1])
        ids = np.concatenate([[2], one, [3], two, [3]]).astype(np.int32)
        made.append(SentencePair(ids, types, int(random)))
    return made
