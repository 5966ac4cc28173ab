"""Every experiment that trains, from corpora to section, at the smallest size: on docstrings, in this process."""

import pytest

from experiments import ablations, fine_tuning, fine_tuning_report, learning_curves, learning_curves_report
from experiments.commands import wrapped

DOCUMENTS = {"dictionary": 600}
LEARNING = learning_curves.Size(DOCUMENTS, steps=10, seeds=2, points=5, held_out=40)
SIZES = {
    learning_curves: LEARNING,
    ablations: LEARNING,
    fine_tuning: fine_tuning.Size(600, steps=8, question_steps=3, subject_steps=3, most=200, test=30, seeds=2),
}


@pytest.fixture(scope="module", params=SIZES, ids=lambda module: module.__name__.rpartition(".")[2])
def measured(request):
    """An experiment and its figures; without other processes, which would import everything again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRIMFUL_OFFLINE", "1")
        patch.setenv("BRIMFUL_CACHE", "nowhere")
        patch.setattr(request.param, "run_all", lambda train, runs: [train(run) for run in runs])
        return request.param, request.param.compute(SIZES[request.param])


def test_figures_become_a_section_without_gaps(measured):
    module, figures = measured
    text = "\n".join(wrapped(module.section(figures | {"machine": "here"})))
    assert f"{figures['plan']['packing_factor']:.3f}" in text
    assert "nan" not in text
    assert "inf" not in text.replace("inference", "")


def test_packs_hold_more_sequences_in_each_row(measured):
    """As many sequences a step, as far as rows can be divided, on fewer rows; so training takes less time."""
    module, figures = measured
    factor = figures["plan"]["packing_factor"]
    assert factor > 1.3
    if module is learning_curves:
        curves = learning_curves_report.curves_of(figures)
        assert learning_curves_report.faster(curves, learning_curves_report.EFFECTIVE).mean > 1.1
        assert learning_curves_report.apart(curves) < 1e-3
    if module is fine_tuning:
        assert fine_tuning_report.speedup(figures).mean > 1.1
        assert all(0 <= run[measure] <= 1 for run in figures["runs"] for measure in ("exact", "f1", "accuracy"))
    if module is ablations:
        assert figures["settings"]["batch_size"] == round(learning_curves.ROWS / factor)
