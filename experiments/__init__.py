"""The paper's experiments, re-run: one file each, figures as JSON and as a page under docs/."""
