"""`moorage version`: prints the version."""

from __future__ import annotations

import platform

import moorage
from moorage.api.versions import DEFAULT_VERSION
from moorage.cli.printing import Form, OutputForm, line, print_data

KUBE_SCHEDULER = f"v{DEFAULT_VERSION}"
"""The release of kube-scheduler whose behaviour Moorage follows by default."""


def version(output: OutputForm = Form.TABLE) -> None:
    """Print the version of Moorage and of the kube-scheduler that it follows."""
    print_version(output)


def print_version(output: Form = Form.TABLE) -> None:
    """Print the versions as text or as data."""
    facts = {"moorage": moorage.__version__, "kubeScheduler": KUBE_SCHEDULER, "python": platform.python_version()}
    if output is not Form.TABLE:
        print_data(facts, output)
        return
    line(f"moorage {moorage.__version__} (behaves as kube-scheduler {KUBE_SCHEDULER})")
