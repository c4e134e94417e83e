"""`python -m moorage`."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # `python -m` puts the current folder there, before everything that is installed
    from moorage.cli import main

    main()
