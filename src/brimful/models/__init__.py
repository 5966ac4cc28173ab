"""Models of Hugging Face transformers on packed rows: what each architecture needs, and BERT's heads per sequence."""

from typing import TYPE_CHECKING, Any

from brimful.models.rules import PackingRule, general_rule, rule_for

if TYPE_CHECKING:
    from brimful.models.packed_encoder import PackedEncoder

__all__ = ["PackedEncoder", "PackingRule", "general_rule", "rule_for"]


def __getattr__(name: str) -> Any:
    """What needs torch is imported when it is first asked for: rules are known without it."""
    if name == "PackedEncoder":
        import brimful.torch  # noqa: F401 - first of all: it says what to install if torch is missing
        from brimful.models import packed_encoder

        return packed_encoder.PackedEncoder
    raise AttributeError(f"module 'brimful.models' has no attribute {name!r}")
