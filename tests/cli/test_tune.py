"""brimful tune: both recipes as the library gives them, from a number or from a plan file."""

import pytest

import brimful
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
        (("--packing-factor", "0.5"), "packing_factor is a number from 1 up"),
        (("--packing-factor", "nan"), "packing_factor is a number from 1 up"),
        (("--packing-factor", "two"), "is a number, such as 2.5, or a plan file; there is no file 'two'"),
        (("--packing-factor", "2", "--betas", "0.9"), "--betas are two numbers with a comma between"),
        (("--packing-factor", "2", "--betas", "0.9,1.0"), "betas are two numbers from 0 to below 1"),
        (("--packing-factor", "2", "--optimizer", "sgd"), "optimizer is one of lamb, adam, adamw, not 'sgd'"),
        (("--packing-factor", "2", "--warmup-steps", "9999"), "warmup_steps are at most total_steps, 7037, not 9999"),
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
