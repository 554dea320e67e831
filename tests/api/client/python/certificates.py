# SPDX-License-Identifier: Apache-2.0
"""certificates: an authority for tests, made by openssl when they run. As
tests/support/fixtures/test_certificates.h.

Thread safety: one thread.
"""

import os
import subprocess

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")


class Authority:
    """Issues certificates into a folder that its owner removes."""

    def __init__(self, folder, name="authority"):
        self._folder = folder
        self._name = name
        self.file = self._path(f"{name}.pem")
        self._key = self._path(f"{name}.key")
        _openssl("req", "-x509", *_KEY, "-keyout", self._key,
                 "-out", self.file, "-subj", f"/CN={name}")

    @property
    def certificate(self):
        """The authority's own, as bytes of PEM."""
        return read(self.file)

    def issue(self, name, *hosts):
        """Makes a certificate for these numbers, and its key, or puts newer
        ones in their places. Returns their files."""
        certificate, key, request = (
            self._path(f"{self._name}-{name}.{end}")
            for end in ("pem", "key", "csr"))
        extensions = self._path(f"{self._name}-{name}.ext")
        with open(extensions, "w", encoding="utf-8") as file:
            if hosts:
                file.write("subjectAltName=" + ",".join(
                    f"IP:{host}" for host in hosts) + "\n")
        _openssl("req", *_KEY, "-keyout", key, "-out", request,
                 "-subj", f"/CN={name}")
        _openssl("x509", "-req", "-in", request, "-CA", self.file,
                 "-CAkey", self._key, "-CAcreateserial",
                 "-extfile", extensions, "-out", certificate)
        os.chmod(key, 0o600)
        return certificate, key

    def _path(self, name):
        return os.path.join(self._folder, name)


def read(path):
    """Returns the bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


def _openssl(*arguments):
    ran = subprocess.run(["openssl", *arguments], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise AssertionError(
            f"openssl {' '.join(arguments)} ended with {ran.returncode}: "
            f"{ran.stderr}")
