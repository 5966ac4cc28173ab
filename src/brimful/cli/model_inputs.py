"""The model that a word of the command line means: a folder, a configuration, or a function that makes it."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brimful.errors import BrimfulError, DataError, SettingError, shown

if TYPE_CHECKING:
    from torch import nn

_MOST_PARAMETERS = 2**25  # of random weights, before the configuration is made smaller
_HARD_LIMIT = 2**29  # and after that
_SMALL = {"vocab_size": 1024, "intermediate_size": 1024, "sliding_window": 8}
_IMPLEMENTATION = {"sdpa": "sdpa", "eager": "eager", "flex": "flex_attention"}


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A model, and what else was made with it.

    Args:
        model: the model.
        collate: the function that makes its inputs, if the user's factory gave one.
        notes: what was changed to make it, for people to know.
    """

    model: nn.Module
    collate: Callable[..., Any] | None
    notes: tuple[str, ...]


def open_model(name: str, attention: str | None = None, allow_pickle: bool = False) -> ModelInput:
    """The model that this word means.

    - A folder as `save_pretrained` writes it: config.json and model.safetensors.
    - A configuration, FILE.json: random weights. If they would be more than 2^25, it is made smaller: one layer of each
      kind, at least 2 in all, vocab_size and intermediate_size at most 1024, sliding_window at most 8. A note says so.
    - module:factory: what the function `factory` of `module` returns, which is imported from the current folder too: a
      torch module, or a pair of it and the function that makes its inputs. This runs the user's code.

    Args:
        name: the word.
        attention: the way of keeping sequences apart; the model is loaded with the attn_implementation that it needs.
        allow_pickle: whether weights may be loaded that are pickled.

    Raises:
        DataError: there is no such file, or it is none of these.
        SettingError: the model cannot be made.

    Example:
        >>> open_model("torch.nn:Identity").model
        Identity()
    """
    path = Path(name)
    if path.is_dir():
        return _from_folder(path, attention, allow_pickle)
    if path.suffix == ".json" or path.is_file():
        return _from_config(path, attention)
    if ":" in name:
        return _from_factory(name)
    raise DataError(
        f"{name}: there is no such folder or file; give a model's folder, its config.json, or module:factory"
    )


def _from_folder(folder: Path, attention: str | None, allow_pickle: bool) -> ModelInput:
    config = _read_config(folder / "config.json")
    names = [path.name for path in folder.iterdir()]
    if not any(name.endswith(".safetensors") for name in names):
        if not any(name.endswith(".bin") for name in names):
            raise DataError(f"{folder}: there are no weights; for random ones give {folder / 'config.json'}")
        if not allow_pickle:
            raise DataError(
                f"{folder}: its weights are pickled, and loading those may run code; give --allow-pickle if you trust "
                "where they come from"
            )
    model_class = _class_of(config)
    with one_line(f"{folder}: cannot be loaded"):
        model = model_class.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            use_safetensors=None if allow_pickle else True,  # None: these if there are any, else what is pickled
            **_implementation(attention),
        )
    return ModelInput(model, None, ())


def _from_config(path: Path, attention: str | None) -> ModelInput:
    import torch

    config = _read_config(path)
    notes = [f"{path}: random weights"]
    with one_line(f"{path}: no model can be made of it"), torch.random.fork_rng(devices=[]):
        if (size := _size(config)) > _MOST_PARAMETERS:
            config, how = _smaller(config)
            notes.append(f"{path}: {size:,} parameters are too many to draw; here it has {how}")
            if (size := _size(config)) > _HARD_LIMIT:
                raise SettingError(
                    f"{path}: {size:,} parameters are left even so; make hidden_size smaller in a copy of it"
                )
        torch.manual_seed(0)
        model = _class_of(config)._from_config(config, **_implementation(attention))
        for parameter in model.parameters():  # a layer that starts at 0 would hide a leak
            if parameter.is_floating_point():
                parameter.data.add_(torch.randn_like(parameter), alpha=0.02)
    return ModelInput(model, None, tuple(notes))


def _from_factory(name: str) -> ModelInput:
    from torch import nn

    module_name, _, attribute = name.partition(":")
    for part, where in ((module_name, "before"), (attribute, "after")):
        if not part:
            raise DataError(f"{name}: a name is missing {where} the colon; give module:factory")
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        with one_line(f"{name}: {module_name} cannot be imported"):
            found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            if not hasattr(found, part):
                raise DataError(f"{name}: there is no {part} in {module_name}")
            found = getattr(found, part)
        made = found
        if not isinstance(found, nn.Module):
            with one_line(f"{name}: the factory fails"):
                made = found()
    finally:
        sys.path.remove(folder)
    model, collate = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, nn.Module) or not (collate is None or callable(collate)):
        raise DataError(
            f"{name}: the factory returns a torch module, or a pair of it and the function that makes its inputs, "
            f"not {shown(made)}"
        )
    return ModelInput(model, collate, ())


def _read_config(path: Path) -> Any:
    try:
        import transformers
    except ModuleNotFoundError as fault:
        raise SettingError(
            f"models of transformers need {fault.name}, which is not installed: pip install 'brimful[transformers]'"
        ) from None
    logging: Any = transformers.utils.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file; a model's folder has a config.json") from None
    except (ValueError, RecursionError) as fault:
        raise DataError(f"{path}: is no JSON ({fault})") from None
    if not isinstance(values, dict) or not isinstance(values.get("model_type"), str):
        raise DataError(f"{path}: has no model_type, so it is no configuration of transformers")
    if "auto_map" in values:
        raise DataError(f"{path}: brings code of its own, which is not run here; use module:factory to make the model")
    with one_line(f"{path}: cannot be read"):
        return transformers.AutoConfig.for_model(**values)


def _class_of(config: Any) -> Any:
    """The class that the configuration names; else the usual one to train."""
    import transformers

    from brimful.models.architectures import ARCHITECTURES

    for name in config.architectures or ():
        if (named := getattr(transformers, name, None)) is not None:
            return named
    known = ARCHITECTURES.get(config.model_type)
    causal, masked = transformers.MODEL_FOR_CAUSAL_LM_MAPPING, transformers.MODEL_FOR_MASKED_LM_MAPPING
    first, second = (masked, causal) if known is not None and not known.causal else (causal, masked)
    for mapping in (first, second, transformers.MODEL_MAPPING):
        if type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, tuple | list) else found
    raise SettingError(f"transformers has no model for {shown(config.model_type)}; use module:factory to make it")


def _implementation(attention: str | None) -> dict[str, str]:
    return {"attn_implementation": _IMPLEMENTATION[attention]} if attention in _IMPLEMENTATION else {}


def _size(config: Any) -> int:
    """How many parameters there would be, without making them."""
    import torch

    with torch.device("meta"):
        model = _class_of(config)._from_config(config)
    return sum(parameter.numel() for parameter in model.parameters())


def _smaller(config: Any) -> tuple[Any, str]:
    """The configuration with few layers and a small vocabulary, and in words how few and small."""
    values = config.to_dict()
    own = {name: config.attribute_map.get(name, name) for name in ("num_hidden_layers", *_SMALL)}
    depth = values[own["num_hidden_layers"]]
    kinds = values.get("layer_types") or []
    # The first of each kind, then as many others as there must be.
    layers = list(dict.fromkeys([*sorted({kinds.index(kind) for kind in kinds}), *range(depth)]))
    layers = sorted(layers[: max(2, len(set(kinds)))])
    for name, value in values.items():
        if isinstance(value, list) and len(value) == depth:  # one for each layer
            values[name] = [value[layer] for layer in layers]
    values[own["num_hidden_layers"]] = len(layers)
    for name, size in _SMALL.items():
        if isinstance(values.get(own[name]), int):
            values[own[name]] = min(size, values[own[name]])
    vocabulary = values[own["vocab_size"]]
    for name, value in values.items():
        if name.endswith("_token_id") and isinstance(value, int) and value >= vocabulary:
            values[name] = 0
    sizes = ", ".join(f"{own[name]} {values[own[name]]}" for name in _SMALL if own[name] in values)
    return type(config).from_dict(values), f"{len(layers)} layers, {sizes}"


@contextmanager
def one_line(what: str) -> Iterator[None]:
    """What the code of others raises, as one line that says what was tried."""
    try:
        yield
    except BrimfulError:
        raise
    except SystemExit as end:
        raise SettingError(f"{what}: its code calls sys.exit({end.code!r})") from None
    except Exception as fault:
        raise SettingError(f"{what}: {type(fault).__name__}: {shown(str(fault), 300)}") from fault
