"""The version of Moorage. The build reads the package's version from here."""

VERSION = "0.1.0"
