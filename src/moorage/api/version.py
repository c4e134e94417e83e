"""The version of Moorage, in one place; the package's metadata is read from here when it is built."""

VERSION = "0.1.0"
