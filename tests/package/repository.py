# SPDX-License-Identifier: Apache-2.0
"""A repository of packages in a directory, as apt reads it by file:, and later versions of them."""
import email.utils
import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile


class Repository:
    def __init__(self, directory, packages):
        self.directory = str(directory)
        self.version = None
        files = [p for p in sorted(glob.glob(f"{packages}/*.deb")) if "-dbgsym_" not in p]
        assert files, f"no packages in {packages}; 'tools/package deb' makes them"
        for path in files:
            shutil.copy(path, self.directory)
        self.packages = [os.path.basename(path).partition("_")[0] for path in files]
        self.version = re.search(r"_(.*)_", os.path.basename(files[0]))[1]
        self._index()

    def path(self, package):
        """As hosts see it."""
        return "/repository/" + os.path.basename(next(iter(glob.glob(f"{self.directory}/{package}_*.deb"))))

    def publish(self, version):
        """The same packages under another version, in the place of those that are there: nothing else of them differs."""
        for path in glob.glob(f"{self.directory}/*.deb"):
            with tempfile.TemporaryDirectory() as work:
                subprocess.run(["dpkg-deb", "-R", path, f"{work}/tree"], check=True)
                with open(f"{work}/tree/DEBIAN/control") as f:
                    control = f.read()
                with open(f"{work}/tree/DEBIAN/control", "w") as f:
                    f.write(re.sub(rf"(?<=[ (= ]){re.escape(self.version)}(?=[\s)])", version, control))
                name = os.path.basename(path).replace(f"_{self.version}_", f"_{version}_")
                subprocess.run(["dpkg-deb", "-Znone", "-b", f"{work}/tree", f"{self.directory}/{name}"], check=True, stdout=subprocess.DEVNULL)
            os.unlink(path)
        self.version = version
        self._index()

    def _index(self):
        index = subprocess.run(["dpkg-scanpackages", "--multiversion", "."], cwd=self.directory, check=True, capture_output=True).stdout
        with open(f"{self.directory}/Packages", "wb") as f:
            f.write(index)
        # unattended-upgrades goes by the origin.
        with open(f"{self.directory}/Release", "w") as f:
            f.write(f"Origin: Primus\nLabel: Primus\nSuite: stable\nDate: {email.utils.formatdate(usegmt=True)}\nSHA256:\n"
                    f" {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n")
