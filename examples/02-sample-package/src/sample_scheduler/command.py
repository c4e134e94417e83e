"""`sample-scheduler`: `mooring run`, under the name that the Deployment starts."""

import sys

from mooring.cli import main as mooring


def main() -> None:
    sys.argv[1:1] = ["run"]
    mooring()
