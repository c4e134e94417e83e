"""`sample-scheduler`: `moorage run`, under the name that the Deployment starts."""

import sys

from moorage.cli import main as moorage


def main() -> None:
    sys.argv[1:1] = ["run"]
    moorage()
