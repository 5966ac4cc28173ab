"""brimful tune: both recipes as the library gives them, from a number or from a plan file."""

import json

import pytest

import brimful
from brimful.resources import plan_resources
from brimful.tuning import TrainingSettings, keep_compute_batch, keep_effective_batch

WORDS = ("--batch-size", 32, "--learning-rate", 0.004, "--total-steps", 7037, "--warmup-steps", 700)
MORE = ("--accumulation-steps", 4, "--betas", "0.81,0.9", "--optimizer", "adamw")
SETTINGS = TrainingSettings(32, 0.004, 7037, 700, 4, (0.81, 0.9), "adamw")


def test_json_is_what_the_library_says(run):
    value = run("tune", "--packing-factor", 2, *WORDS, *MORE, "--json").json
    assert value["packing_factor"] == 2.0
    assert value["unpacked"]["betas"] == [0.81, 0.9]
    assert value["unpacked"]["total_steps"] == 7037
    assert value["keep_effective_batch"] == keep_effective_batch(SETTINGS, 2).figures()
    assert value["keep_compute_batch"] == keep_compute_batch(SETTINGS, 2).figures()
    assert value["keep_compute_batch"]["settings"]["total_steps"] == 3519


def test_a_plan_takes_the_place_of_the_number(run, tmp_path):
    path = tmp_path / "plan.json"
    plan = brimful.plan([5, 5, 4, 4, 4, 1, 1], max_length=10)
    plan.save(path)
    value = run("tune", "--packing-factor", path, *WORDS, "--json").json
    assert value["packing_factor"] == pytest.approx(7 / 3)
    assert value["keep_compute_batch"]["settings"]["total_steps"] == -(-7037 * 3 // 7)


@pytest.fixture
def packed(run, tmp_path):
    """A folder that brimful pack wrote: 7 sequences in 3 packs."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"input_ids": [1] * n}) + "\n" for n in (5, 5, 4, 4, 4, 1, 1)))
    run("pack", rows, "-o", tmp_path / "packed", "--max-length", 10)
    return tmp_path / "packed"


def test_a_packed_folder_takes_its_place_too(run, packed):
    for path in (packed, packed / "brimful.json"):
        value = run("tune", "--packing-factor", path, *WORDS, "--json").json
        assert value["packing_factor"] == pytest.approx(7 / 3)
        assert value["keep_compute_batch"]["settings"]["total_steps"] == -(-7037 * 3 // 7)


def test_a_manifest_is_not_trusted(run, packed):
    path = packed / "brimful.json"
    written = json.loads(path.read_text())

    def error(**figures):
        path.write_text(json.dumps({**written, "figures": {**written["figures"], **figures}}))
        return run("tune", "--packing-factor", packed, *WORDS).error

    assert error(packs=8).startswith(f"{path}: figures say how many packs there are")
    assert error(packs="3").startswith(f"{path}: figures say how many packs there are")
    assert error(sequences=None).startswith(f"{path}: figures say how many packs there are")
    assert error(packs=0) == f"{path}: holds no sequences, so it has no packing factor; give it as a number"
    path.write_text(json.dumps({**written, "version": 2}))
    assert f"{path}: manifest version 2 is not known" in run("tune", "--packing-factor", packed, *WORDS).error
    path.unlink()
    assert f"{packed}: there is no brimful.json; give a folder" in run("tune", "--packing-factor", packed, *WORDS).error


def test_a_plan_of_nothing_is_named(run, tmp_path):
    path = tmp_path / "empty.json"
    brimful.plan([], 8).save(path)
    said = run("tune", "--packing-factor", path, *WORDS).error
    assert said == f"{path}: holds no sequences, so it has no packing factor; give it as a number"


def test_a_plan_of_resources_is_refused_with_the_way_out(run, tmp_path):
    path = tmp_path / "plan.json"
    plan_resources({"tokens": [9, 2], "images": [0, 2]}, {"tokens": 10, "images": 2}).save(path)
    said = run("tune", "--packing-factor", path, *WORDS).error
    assert said == f"{path}: a plan of resources; give the packing factor that brimful plan printed, as a number"


@pytest.mark.parametrize(
    ("written", "name", "line"),
    [
        (None, "adamw", "torch.optim.AdamW("),
        ("AdamW", "adamw", "torch.optim.AdamW("),
        ("ADAM", "adam", "torch.optim.Adam("),
        ("Lamb", "lamb", "pytorch_optimizer.Lamb("),
    ],
)
def test_optimizers_in_any_case(run, written, name, line):
    words = () if written is None else ("--optimizer", written)
    value = run("tune", "--packing-factor", 2, *WORDS, *words, "--json").json
    assert value["unpacked"]["optimizer"] == name
    assert value["keep_compute_batch"]["code"].startswith(line)


def test_no_digit_is_lost_in_a_narrow_terminal(run, monkeypatch):
    wide = run("tune", "--packing-factor", 2, *WORDS, *MORE).out
    monkeypatch.setenv("COLUMNS", "40")
    narrow = run("tune", "--packing-factor", 2, *WORDS, *MORE).out
    assert "…" not in narrow
    assert narrow.splitlines()[2:14] == wide.splitlines()[2:14]


def test_table_fits_and_holds_the_numbers(run):
    said = run("tune", "--packing-factor", 2, *WORDS, *MORE)
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert max(len(line) for line in lines) <= 80
    cells = {tuple(line.split()[:-3]): line.split()[-3:] for line in lines[2:] if len(line.split()) > 3}
    assert cells[("accumulation", "steps")] == ["4", "2", "4"]
    assert cells[("sequences", "in", "a", "step")] == ["128", "128", "256"]
    assert cells[("beta", "1")] == ["0.81", "0.81", "0.6561"]
    assert cells[("optimizer", "steps")] == ["7,037", "7,037", "3,519"]
    assert "torch.optim.AdamW(model.parameters(), lr=0.004, betas=(0.6561, 0.81))" in said.out
    assert "rounded up" in said.out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--packing-factor", "0.5"), "packing_factor is a number from 1 to 2147483647"),
        (("--packing-factor", "1e18"), "packing_factor is a number from 1 to 2147483647"),
        (("--packing-factor", "1e999"), "packing_factor is a number from 1 to 2147483647"),
        (("--packing-factor", "nan"), "packing_factor is a number from 1 to 2147483647"),
        (("--packing-factor", "two"), "is a number, such as 2.5, a plan file or a folder that brimful pack wrote"),
        (("--packing-factor", "two"), "there is none named 'two'"),
        (("--packing-factor", ""), "there is none named ''"),
        (("--packing-factor", "1_0"), "there is none named '1_0'"),
        (("--packing-factor", "２"), "there is none named '２'"),  # a digit, but a wide one
        (("--packing-factor", "2", "--betas", "0.9,0.9_9"), "--betas are two numbers with a comma between"),
        (("--packing-factor", "2", "--betas", "0.9"), "--betas are two numbers with a comma between"),
        (("--packing-factor", "2", "--betas", "0.9,1.0"), "betas are two numbers from 0 to below 1"),
        (("--packing-factor", "2", "--optimizer", "sgd"), "optimizer is one of lamb, adam, adamw, not 'sgd'"),
        (("--packing-factor", "2", "--optimizer", "SGD"), "optimizer is one of lamb, adam, adamw, not 'SGD'"),
        (
            ("--packing-factor", "2", "--warmup-steps", "9999"),
            "warmup_steps is a whole number from 0 to 7037, not 9999",
        ),
        (("--packing-factor", "2", "--warmup-steps", "1e2"), "warmup_steps is a whole number from 0 to"),
        (("--packing-factor", "2", "--learning-rate", "abc"), "learning_rate is a number, such as 0.5, not 'abc'"),
        (("--packing-factor", "2", "--total-steps", "1e3"), "total_steps is a whole number from 1 to 2147483647, not"),
        (("--packing-factor", "2", "--batch-size", "0"), "batch_size is a whole number from 1 to 2147483647, not 0"),
        ((), "Missing option '--packing-factor'"),
    ],
)
def test_wrong_words_are_one_line(run, words, error):
    assert error in run("tune", *WORDS, *words).error


def test_a_file_that_is_no_plan_is_named(run, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("{}")
    assert f"{path}: a plan is a JSON object" in run("tune", "--packing-factor", path, *WORDS).error


def test_help_fits(run):
    said = run("tune", "--help")
    assert said.status == 0
    assert "--json" in said.out
    assert max(len(line) for line in said.out.splitlines()) <= 80
