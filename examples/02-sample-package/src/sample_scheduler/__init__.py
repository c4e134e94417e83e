"""The plugins of the tutorials, as a package that pip installs."""
