"""`python -m mooring`."""

from mooring.cli import main

if __name__ == "__main__":
    main()
