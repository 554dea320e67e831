# SPDX-License-Identifier: Apache-2.0
"""native: a guest whose kernel and libraries have FLUSH and atomic WRITE.

Idea: this machine's Debian 12 has neither; the release behind it has both. What
is needed of that one is downloaded and unpacked into one folder, and nothing is
installed: a kernel (rdma_rxe has the two since Linux 6.2), the headers and
libraries of rdma-core, and the C library that these need. Programs are compiled
here against those headers, and run in the guest by that release's loader; all
other libraries are this machine's. apt's own configuration, lists and cache stay
as they are: it is given others, in the folder, and from where to download by apt
itself.

Downloaded, by apt, signatures checked: the release's list of packages (10 MB)
and PACKAGES with the kernel (120 MB). Compiled: the fabric and its tests.
"""
import lzma
import os
import pathlib
import shutil

from guest import Guest, GuestError, run

RELEASE = "trixie"
LIBRARIES = """libibverbs1 libibverbs-dev ibverbs-providers librdmacm1t64
  librdmacm-dev libnl-3-200 libnl-route-3-200 libc6""".split()
KERNEL = "linux-image-amd64"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
TARGETS = ("verbs_parts_test", "verbs_conformance_test", "verbs_guest_test")


def base_address():
    """Where this machine's Debian comes from, as its apt says."""
    addresses = run("apt-get", "indextargets", "--format", "$(REPO_URI)",
                    "Origin: Debian", "Label: Debian").split()
    if not addresses:
        raise GuestError("apt has no list of Debian's packages; run apt-get "
                         "update")
    return addresses[0]


class Release:
    """The other release's packages, unpacked into a folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.root = self.folder / "root"
        self.kernel = self.folder / "kernel"
        self.libraries = self.root / "usr/lib/x86_64-linux-gnu"

    def apt(self, command, *arguments, **options):
        """apt with a configuration of its own."""
        folder = self.folder / "apt"
        return run(command, "-q", "-o", "Dir::Etc::sourcelist=/dev/null",
                   "-o", f"Dir::Etc::sourceparts={folder}/sources",
                   "-o", f"Dir::State::Lists={folder}/lists",
                   "-o", f"Dir::Cache={folder}/cache",
                   "-o", "Dir::State::status=/dev/null",
                   "-o", "APT::Sandbox::User=root", *arguments, **options)

    def unpack(self):
        """Downloads and unpacks all of it, once."""
        if self.kernel.exists():
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("sources", "lists/partial", "cache/archives/partial"):
            (self.folder / "apt" / name).mkdir(parents=True)
        (self.folder / "apt/sources/other.sources").write_text(
            f"Types: deb\nURIs: {base_address()}\nSuites: {RELEASE}\n"
            f"Components: main\nSigned-By: {KEYRING}\n")
        self.apt("apt-get", "update")
        self.unpack_packages(LIBRARIES, self.root)
        self.point_at_libraries()
        unpacked = self.folder / "kernel.new"
        depends = self.apt("apt-cache", "depends", KERNEL).split()
        self.unpack_packages([word for word in depends
                              if word.startswith("linux-image-6")], unpacked)
        self.prepare_modules(unpacked)
        unpacked.rename(self.kernel)

    def unpack_packages(self, packages, where):
        folder = self.folder / "packages"
        folder.mkdir()
        self.apt("apt-get", "download", *packages, cwd=folder)
        for file in folder.glob("*.deb"):
            run("dpkg", "-x", file, where)
        shutil.rmtree(folder)

    def point_at_libraries(self):
        """pkg-config finds them where they were unpacked."""
        for name in ("libibverbs", "librdmacm"):
            file = self.libraries / f"pkgconfig/{name}.pc"
            file.write_text(file.read_text().replace("=/usr/",
                                                     f"={self.root}/usr/"))
        # Only this machine's C library is compiled and linked against.
        for file in self.libraries.parent.parent.glob("include/*"):
            if file.name not in ("infiniband", "rdma"):
                shutil.rmtree(file)

    @staticmethod
    def prepare_modules(kernel):
        """As Debian 12's are: not compressed, and in /lib."""
        for file in kernel.glob("usr/lib/modules/*/kernel/**/*.ko.xz"):
            file.with_suffix("").write_bytes(lzma.decompress(file.read_bytes()))
            file.unlink()
        (kernel / "lib").symlink_to("usr/lib")
        run("depmod", "-b", kernel, next((kernel / "lib/modules").iterdir()).name)

    def command(self, program):
        """Runs a program by this release's loader, with its libraries first."""
        return (f"{self.root}/usr/lib64/ld-linux-x86-64.so.2 --library-path "
                f"{self.libraries}:/lib/x86_64-linux-gnu {program}")

    def environment(self):
        """Lines of a script: libibverbs takes its own provider of Soft-RoCE."""
        return f"export IBV_DRIVERS={self.libraries}/libibverbs/librxe"

    def build(self, source, build):
        """Compiles the tests against its headers."""
        environment = dict(os.environ,
                           PKG_CONFIG_PATH=f"{self.libraries}/pkgconfig")
        # Its libraries miss what only its C library has.
        run("cmake", "-S", source, "-B", build, "-G", "Ninja",
            "-DCMAKE_CXX_COMPILER=g++", "-DCMAKE_C_COMPILER=gcc",
            "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
            "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG",
            "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined",
            "-DCMAKE_SKIP_RPATH=ON", "-DCMAKE_UNITY_BUILD=ON",
            env=environment)
        cache = (pathlib.Path(build) / "CMakeCache.txt").read_text()
        if "ALPHEUS_HAS_NATIVE_VERBS:INTERNAL=1" not in cache:
            raise GuestError("the headers have no FLUSH or atomic WRITE")
        run("cmake", "--build", build, "-j", str(os.cpu_count()), "--target",
            *TARGETS)


class NativeGuest(Guest):
    """A guest with the other release's kernel."""

    def __init__(self, folder, release):
        super().__init__(folder)
        self.kernel = release.kernel
