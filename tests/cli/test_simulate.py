"""brimful simulate: the curves of the library as JSON, as a table, and as a picture that is never overwritten."""

import subprocess
import sys

import pytest

import brimful
from brimful.simulate import DEVICES, METHODS, CostModel, simulate

pictures = pytest.mark.parametrize("ending", [".svg", ".png", ".html"])


@pytest.fixture
def words(files):
    return ("simulate", "--histogram", files["histogram"], "--max-length", 64)


def test_json_is_what_the_library_says(run, words, files):
    costs = ("--quadratic-share", 0.1, "--step-overhead", 0.02, "--packing-overhead", 0.03)
    more = ("--unpadding-overhead", 0.04, "--recompilation", 5, "--mega-batch-mult", 2)
    sizes = ("--devices", "1, 8,64", "--batch-size", 3, "--max-sequences", 2, "--algorithm", "lpfhp")
    value = run(*words, *costs, *more, *sizes, "--json").json
    plan = brimful.plan(brimful.LengthHistogram.from_csv(files["histogram"]), 64, 2, "lpfhp")
    expected = simulate(plan, [1, 8, 64], 3, CostModel(0.1, 0.02, 0.03, 0.04, 5), mega_batch_mult=2).figures()
    for figures in (value["plan"], expected["plan"]):
        del figures["seconds"]
    ledger = value.pop("ledger")
    assert ledger["tokens_packed"] == plan.histogram.n_tokens
    assert value == {"input": str(files["histogram"]), **expected, "output": None}
    assert list(value["speedups"]) == list(METHODS)


def test_devices_are_those_of_the_paper_if_left_out(run, words):
    assert run(*words, "--json").json["devices"] == list(DEVICES)


def test_table_fits_and_has_a_row_for_each_number_of_devices(run, words):
    said = run(*words, "--quadratic-share", 0.1)
    assert (said.status, said.err) == (0, "")
    report = said.out.splitlines()
    assert max(len(line) for line in report[1:]) <= 80
    rows = [line.split() for line in report if line.strip()[:1].isdigit()]
    assert [row[0] for row in rows] == [f"{devices:,}" for devices in DEVICES]
    assert {len(row) for row in rows} == {1 + len(METHODS)}
    assert "From 1 to 2,048 devices packing stays" in said.out
    assert "attends within each" in said.out


def test_files_are_read_as_plan_reads_them(run, files, tmp_path):
    """Lengths of text, cut to rows of 8; written as a histogram, they give the same."""
    words = ("--text-column", "text", "--tokenizer", "bytes", "--overflow", "split")
    said = run(
        "simulate", files["text"], *words, "--max-length", 8, "--devices", "1,2", "--batch-size", 1, "--json"
    ).json
    brimful.LengthHistogram.from_lengths([6, 8, 5]).to_csv(tmp_path / "h.csv")
    same = run(
        "simulate",
        "--histogram",
        tmp_path / "h.csv",
        "--max-length",
        8,
        "--devices",
        "2,1,2",
        "--batch-size",
        1,
        "--json",
    ).json
    assert said["speedups"] == same["speedups"]
    assert said["devices"] == same["devices"] == [1, 2]
    assert said["ledger"]["rows_split"] == 1
    in_order = run("simulate", files["parquet"], "--max-length", 64, "--algorithm", "next_fit", "--json").json
    assert in_order["plan"]["algorithm"] == "next_fit"
    dropped = run(
        "simulate", "--histogram", files["histogram"], "--max-length", 32, "--overflow", "drop", "--json"
    ).json
    assert dropped["ledger"]["rows_dropped"] == 4


def test_steps_that_no_epoch_fills_are_named(run, words):
    """17 sequences in 5 packs, two rows a device: two devices have a whole step, three have none."""
    packs = run(*words, "--batch-size", 2, "--json").json["plan"]["packs"]
    most = packs // 2
    assert f"more than {most} device" in run(*words, "--batch-size", 2, "--devices", f"1,{most + 1}").out
    assert "is theory" not in run(*words, "--batch-size", 2, "--devices", f"1,{most}").out


@pictures
def test_picture_is_drawn_and_never_overwritten(run, words, tmp_path, ending):
    path = tmp_path / "new" / f"curve{ending}"
    assert f"Drawn: {path}" in run(*words, "-o", path).out
    assert path.stat().st_size > 1000
    path.write_text("mine")
    assert "exists already" in run(*words, "-o", path).error
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (("--devices", "1,x"), "--devices is whole numbers separated by commas, such as 1,8,64, not '1,x'"),
        (("--devices", ""), "--devices is whole numbers separated by commas"),
        (("--devices", "0"), "the number of devices is a whole number from 1"),
        (("--devices", "9999999"), "the number of devices is a whole number from 1 to 1048576, not 9999999"),
        (("--batch-size", "x"), "batch_size is a whole number from 1 to 8192, not 'x'"),
        (("--quadratic-share", "2"), "quadratic_share is a number from 0 to 1, such as 0.05, not 2.0"),
        (("--recompilation", "-1"), "recompilation is a number from 0 to 1,000,000,000, such as 0.05, not -1.0"),
        (("--step-overhead", "nan"), "step_overhead is a number from 0 to 1,000,000,000"),
        (("--unpadding-overhead", "5%"), "unpadding_overhead is a number, such as 0.5, not '5%'"),
        (("--algorithm", "magic"), "there is no algorithm 'magic'"),
        (("--algorithm", "next_fit"), "next_fit packs in data order"),
        (("--max-length", "32"), "4 of 17 sequences are longer than max_length 32"),
        (("-o", "curve.jpg"), "curve.jpg: a picture ends in one of .svg, .png, .html, not '.jpg'"),
    ],
)
def test_wrong_words_are_one_line(run, words, more, error):
    assert error in run(*words, *more).error


def test_what_cannot_be_drawn_is_refused_before_anything_is_read(run, tmp_path):
    words = ("simulate", "--histogram", tmp_path / "no.csv", "--max-length", 64)
    assert "a picture ends in one of" in run(*words, "-o", "curve.jpg").error


def test_wrong_histograms_are_one_line(run, tmp_path):
    assert "No such file" in run("simulate", "--histogram", tmp_path / "no.csv", "--max-length", 64).error
    path = tmp_path / "h.csv"
    path.write_text("len,n\n1,2\n")
    assert "starts with the header length,count" in run("simulate", "--histogram", path, "--max-length", 64).error
    path.write_text("length,count\n")
    assert f"{path}: there are no sequences" in run("simulate", "--histogram", path, "--max-length", 64).error


def test_help_fits(run):
    said = run("simulate", "--help")
    assert said.status == 0
    assert "--json" in said.out
    assert max(len(line) for line in said.out.splitlines()) <= 80


def test_table_needs_no_library_that_draws(files):
    timed = [sys.executable, "-X", "importtime", "-m", "brimful", "simulate", "--max-length", "64", "--devices", "1"]
    ended = subprocess.run([*timed, "--histogram", files["histogram"]], capture_output=True, check=True, text=True)  # noqa: S603
    assert "brimful.simulate" in ended.stderr
    assert not {"altair", "vl_convert", "torch"} & {line.split()[-1] for line in ended.stderr.splitlines()}
