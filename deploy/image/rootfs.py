"""Builds the file system of the image: Python, the installed packages and the libraries they link to.

    python rootfs.py --venv /opt/moorage --target /rootfs

The image has no shell, no package manager and no compiler. It has a user that is not root and a folder for
temporary files. This script runs in the build stage of the Containerfile, with the Python of the image.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

USER = 10001
NEVER_IMPORTED = (
    "__pycache__", "test", "tests", "idlelib", "turtledemo", "tkinter", "ensurepip", "lib2to3", "pydoc_data",
    "config-*", "*.a", "pip", "pip-*", "setuptools", "setuptools-*", "_distutils_hack",
    "distutils-precedence.pth",
)  # fmt: skip
"""Files of the standard library and the packages that Moorage never imports."""
LEFT_OUT = ("embedded", "up", "web", "bench")
"""Packages of Moorage that a scheduler in a cluster never imports: the embedded cluster, the web UI, benchmarks."""
CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
NAME_SERVICE = "hosts: files dns\npasswd: files\ngroup: files\n"
MAGIC = b"\x7fELF"


def lay_out(venv: Path, target: Path) -> None:
    """Copy everything below `target`, keeping the current paths."""
    _copy_tree(Path(sys.base_prefix) / "lib" / version(), target, "site-packages", "dist-packages")
    _copy_tree(venv / "lib" / version(), target)
    leave_out(_below(target, venv) / "lib" / version() / "site-packages" / "moorage")
    _copy(Path(sys.executable).resolve(), target)
    _interpreter(venv, target)
    for library in sorted(set(libraries(target))):
        _copy_with_links(Path(library), target)
    for file in [*Path("/usr/lib").rglob("libnss_*.so*"), *Path("/lib").glob("*/libnss_*.so*")]:
        _copy_with_links(file, target)  # libraries that resolve names, to which nothing links
    _settings(target)


def leave_out(package: Path) -> None:
    """Remove the packages in LEFT_OUT from a copy of Moorage."""
    for name in LEFT_OUT:
        shutil.rmtree(package / name, ignore_errors=True)


def _copy_tree(folder: Path, target: Path, *also_not: str) -> None:
    skip = shutil.ignore_patterns(*NEVER_IMPORTED, *also_not)
    shutil.copytree(folder, _below(target, folder), symlinks=True, ignore=skip, dirs_exist_ok=True)


def version() -> str:
    """Return the name of the library folder, such as python3.13."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _interpreter(venv: Path, target: Path) -> None:
    """Create the `python` of the environment as a link to the copied interpreter."""
    bin_folder = _below(target, venv) / "bin"
    bin_folder.mkdir(parents=True, exist_ok=True)
    (bin_folder / "python").symlink_to(Path(sys.executable).resolve())
    shutil.copy(venv / "pyvenv.cfg", _below(target, venv) / "pyvenv.cfg")


def libraries(target: Path) -> Iterator[str]:
    """Yield the libraries that programs and extension modules link to, and the loader, according to ldd."""
    for path in [path for path in target.rglob("*") if path.is_file() and not path.is_symlink()]:
        with path.open("rb") as file:
            if file.read(4) != MAGIC:
                continue
        listed = subprocess.run(["ldd", str(path)], capture_output=True, text=True).stdout
        yield from re.findall(r"(?:=> )?(/\S+) \(0x", listed)


def _copy_with_links(source: Path, target: Path) -> None:
    """Copy a library together with the links that name it."""
    place = _below(target, source)
    if place.exists() or target in source.parents:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    real = source.resolve()
    if source != real:
        _copy(real, target)
        shutil.copy2(real, place)
    else:
        shutil.copy2(source, place)


def _copy(source: Path, target: Path) -> None:
    place = _below(target, source)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, place)


def _settings(target: Path) -> None:
    etc = target / "etc"
    etc.mkdir(parents=True, exist_ok=True)
    (etc / "passwd").write_text(f"moorage:x:{USER}:{USER}::/:/none\n")
    (etc / "group").write_text(f"moorage:x:{USER}:\n")
    (etc / "nsswitch.conf").write_text(NAME_SERVICE)
    temporary = target / "tmp"
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o1777)
    for file in map(Path, CERTIFICATES):
        if file.exists():
            _copy(file.resolve(), target)
            if file.resolve() != file:
                _copy_with_links(file, target)


def _below(target: Path, path: Path) -> Path:
    return target / path.relative_to("/")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    chosen = parser.parse_args()
    lay_out(chosen.venv.absolute(), chosen.target.absolute())
