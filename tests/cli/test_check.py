"""brimful check: every check printed, and an exit status that tells how they ended."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="session")
def packed(files, tmp_path_factory):
    """The rows, packed."""
    from brimful.tables.output import pack_to_folder
    from brimful.tables.settings import PackSettings
    from brimful.tables.sources import open_source

    folder = tmp_path_factory.mktemp("check") / "packed"
    pack_to_folder(open_source([files["parquet"]]), PackSettings(64, keep_columns=("name",)), folder)
    return folder


def test_what_was_packed_passes(run, packed, parquet):
    said = run("check", packed, parquet)
    assert (said.status, said.err) == (0, "")
    assert said.out.count("✓") == 13
    assert "same sequences: all 200 of the input are there" in said.out
    value = run("check", packed, "--json").json
    assert value["passed"]
    assert [check["name"] for check in value["checks"]][:2] == ["manifest", "shards"]
    assert len(value["checks"]) == 12


def test_other_input_fails(run, packed, table, tmp_path):
    pq.write_table(table.slice(1), tmp_path / "other.parquet")
    said = run("check", packed, tmp_path / "other.parquet")
    assert (said.status, said.err) == (1, "")
    assert "✗ FAILED same sequences: the ledger says rows_read 200, but the input gives 199" in said.out
    assert run("check", packed, tmp_path / "other.parquet", "--json").json["passed"] is False


def test_damaged_folder_fails(run, packed, parquet, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(packed, folder)
    next(folder.rglob("*.parquet")).unlink()
    assert "✗ FAILED shards" in run("check", folder, parquet).out
    (folder / "brimful.json").write_text("{}")
    said = run("check", folder, parquet)
    assert said.status == 1
    assert said.out.count("FAILED") == 1


def test_text_is_tokenized_again(run, files, tmp_path):
    text = ("--text-column", "text", "--tokenizer", "bytes")
    said = run("pack", files["text"], "-o", tmp_path / "packed", "--max-length", 32, *text)
    assert f"To check it: brimful check {tmp_path / 'packed'} {files['text']} {' '.join(text)}" in said.out
    assert run("check", tmp_path / "packed", files["text"], *text).status == 0
    assert "and if it was text, the same text column" in run("check", tmp_path / "packed", files["text"]).error


def test_bad_input_is_one_line(run, packed, parquet, tmp_path):
    assert "there is no brimful.json" in run("check", tmp_path).error
    assert "there is no brimful.json" in run("check", tmp_path / "nowhere").error
    assert "no such file" in run("check", packed, tmp_path / "nowhere.parquet").error
    assert "go together" in run("check", packed, parquet, "--tokenizer", "bytes").error
    assert "holds packed datasets below it; give one of them" in run("check", packed, packed.parent).error
    assert "are for INPUT" in run("check", packed, "--tokenizer", "bytes").error
    pq.write_table(pa.table({"input_ids": [1]}), tmp_path / "numbers.parquet")
    assert "not lists of token ids" in run("check", packed, tmp_path / "numbers.parquet").error
