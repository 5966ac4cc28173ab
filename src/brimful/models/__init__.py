"""Models of Hugging Face transformers on packed rows: what each architecture needs, and BERT's heads per sequence."""

from brimful.models.packed_encoder import PackedEncoder
from brimful.models.rules import PackingRule, general_rule, rule_for

__all__ = ["PackedEncoder", "PackingRule", "general_rule", "rule_for"]
