# SPDX-License-Identifier: Apache-2.0
"""guest: a machine with RDMA adapters and persistent memory, in QEMU.

Idea: Debian's kernel, unpacked and not installed, boots an initramfs that puts
an overlay over this machine's root, so that what was built here runs there.
Soft-RoCE is the adapter, files of this machine are the NVDIMMs: they outlive
the guest, as persistent memory does a power cut. Nothing of this machine is
changed; what is made lies in one folder.

    guest.py FOLDER SCRIPT    runs a shell script in a fresh guest; its status
                              is this program's

Facts behind it: the processor is emulated (-accel tcg), some twenty times
slower than this machine's; a kernel that looks whether its timer works counts
interrupts against the time, and panics where QEMU was kept from the processor,
so it is told not to look (no_timer_check); modules for 6.1's rdma_rxe need
crc32_generic; sizes of NVDIMM namespaces are multiples of 16 MiB behind a label
area of 2 MiB.
"""
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import zlib

HERE = pathlib.Path(__file__).resolve().parent
# Modules of the guest's kernel; each loads those that it depends on.
MODULES = """crc32_generic libnvdimm 9p 9pnet_virtio virtio_pci virtio_net
  rdma_rxe ib_uverbs rdma_ucm nfit nd_pmem dax_pmem device_dax crc32c_generic
  ext4 overlay dummy veth bridge tls chacha20poly1305 chacha_generic
  poly1305_generic""".split()
NVDIMM_BYTES = 258 << 20
NVDIMMS = 2
STATUS = "guest-exit-status: "


class GuestError(Exception):
    """The guest could not be made, or did not end as it should."""


class KernelMissing(GuestError):
    """Debian's kernel can't be had here."""


def run(*command, **options):
    """Runs a command of this machine; its output is shown if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          **options)
    if done.returncode != 0:
        raise GuestError(f"{' '.join(map(str, command))}: status "
                         f"{done.returncode}\n{done.stdout}")
    return done.stdout


class Guest:
    """Kernel, initramfs and NVDIMMs of guests that run one after another.

    Guests with a name have a folder of their own in that of the kernel, so that
    several run at once. `networks` has what QEMU's -netdev takes, but for the
    id, for each network interface: eth0 and so on.
    """

    def __init__(self, folder, name="", nvdimms=NVDIMMS, networks=()):
        self.kernel = pathlib.Path(folder).resolve() / "kernel"
        self.name = name
        self.folder = self.kernel.parent / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.nvdimms = nvdimms
        self.networks = networks
        self.initramfs = self.folder / "initramfs.gz"
        self.qemu = None
        self.is_cut = False

    def cut_power(self):
        """Ends the guest that runs, as a power cut would: for `heard`."""
        self.is_cut = True
        self.qemu.kill()

    def say(self, line):
        """Types a line at the console of the guest that runs. Raises OSError or
        ValueError if it has ended."""
        os.write(self.qemu.stdin.fileno(), f"{line}\n".encode())

    def unpack_kernel(self):
        """Downloads and unpacks the kernel that Debian has now, once. Raises
        KernelMissing."""
        if self.kernel.exists():
            return
        unpacked = self.kernel.parent / "kernel.new"
        shutil.rmtree(unpacked, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=self.kernel.parent) as folder:
            run("dpkg", "-x", self.download_kernel(pathlib.Path(folder)),
                unpacked)
        run("depmod", "-b", unpacked, next((unpacked / "lib/modules").iterdir()).name)
        unpacked.rename(self.kernel)

    @staticmethod
    def download_kernel(folder):
        """The package's file, in that folder. Raises KernelMissing."""
        # Lists of its own: this machine's may be older than the mirror, which
        # then has the package no more.
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        options = ["-q", "-o", f"Dir::State::Lists={folder}/lists",
                   "-o", f"Dir::Cache={folder}/cache",
                   "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3"]
        try:
            run("apt-get", *options, "--error-on=any", "update")
            depends = run("apt-cache", *options, "depends", "linux-image-amd64")
            package = next((word for word in depends.split()
                            if word.startswith("linux-image-6")), None)
            if not package:
                raise GuestError(f"apt has no kernel; it says\n{depends}")
            run("apt-get", *options, "download", package, cwd=folder)
        except GuestError as error:
            raise KernelMissing(error) from error
        return next(folder.glob("linux-image-*.deb"))

    def module_files(self):
        """The modules' files, each behind those that it needs."""
        version = next((self.kernel / "lib/modules").iterdir()).name
        files = {}
        for module in MODULES:
            lines = run("modprobe", "-C", "/dev/null", "-d", self.kernel, "-S",
                        version, "--show-depends", module)
            for line in lines.splitlines():
                words = line.split()
                if words and words[0] == "insmod":
                    files[words[1]] = None
        return [pathlib.Path(file) for file in files]

    def make_initramfs(self, script):
        """An archive whose /guest.sh is the script."""
        root = self.folder / "initramfs"
        shutil.rmtree(root, ignore_errors=True)
        for name in ("bin", "proc", "sys", "dev", "host", "upper", "mnt",
                     "modules"):
            (root / name).mkdir(parents=True)
        shutil.copy("/bin/busybox", root / "bin/busybox")
        files = self.module_files()
        for file in files:
            shutil.copy(file, root / "modules" / file.name)
        (root / "modules/order").write_text(
            "".join(file.name + "\n" for file in files))
        shutil.copy(HERE / "init.sh", root / "init")
        (root / "init").chmod(0o755)
        (root / "guest.sh").write_text(script)
        names = "".join(f"{file.relative_to(root)}\n"
                        for file in sorted(root.rglob("*")))
        archive = subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(),
            stdout=subprocess.PIPE, cwd=root, check=True).stdout
        self.initramfs.write_bytes(gzip.compress(archive, compresslevel=1))

    def command(self):
        """QEMU's command line."""
        # A guest that waits at its console would outlive the process that types
        # there.
        command = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64",
                   "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
                   "-M", "pc,nvdimm=on",
                   "-m", "2048,slots=4,maxmem=8G", "-nographic", "-no-reboot", "-nic", "none",
                   "-kernel", next((self.kernel / "boot").glob("vmlinuz-*")),
                   "-initrd", self.initramfs,
                   "-append", "console=ttyS0 panic=-1 quiet mitigations=off "
                   "tsc=reliable clocksource=tsc no_timer_check",
                   "-virtfs", "local,path=/,mount_tag=host,"
                   "security_model=none,readonly=on,multidevs=remap"]
        # Two interfaces with one address could not hear each other.
        owner = zlib.crc32(self.name.encode()).to_bytes(4, "big")[1:].hex(":")
        for number, network in enumerate(self.networks):
            command += ["-netdev", f"{network},id=network{number}", "-device",
                        f"virtio-net-pci,netdev=network{number},"
                        f"mac=52:54:{owner}:{number:02x},romfile="]
        for number in range(self.nvdimms):
            file = self.folder / f"nvdimm{number}.img"
            if not file.exists():
                with open(file, "wb") as image:
                    image.truncate(NVDIMM_BYTES)
            command += ["-object",
                        f"memory-backend-file,id=memory{number},share=on,"
                        f"mem-path={file},size={NVDIMM_BYTES}",
                        "-device", f"nvdimm,id=nvdimm{number},"
                        f"memdev=memory{number},label-size=2M"]
        return [str(word) for word in command]

    def run(self, script, timeout_s, heard=lambda line: None):
        """Boots, runs the script, and powers off. `heard` gets each line of the
        console as it comes. Returns the script's status, None after cut_power,
        and the console's text. Raises GuestError where the guest ends without a
        status, or not in time.
        """
        self.unpack_kernel()
        self.make_initramfs(script)
        lines = []
        self.is_cut = False
        with subprocess.Popen(self.command(), cwd=self.folder,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as qemu:
            self.qemu = qemu
            # A guest that hangs says nothing.
            timer = threading.Timer(timeout_s, qemu.kill)
            timer.start()
            try:
                for raw in qemu.stdout:
                    line = raw.decode(errors="replace")
                    line = line.replace("\r", "").replace("\033", "").rstrip()
                    lines.append(line)
                    heard(line)
            finally:
                timer.cancel()
                qemu.kill()
        text = "\n".join(lines)
        if self.is_cut:
            return None, text
        for line in reversed(lines):
            if line.startswith(STATUS):
                return int(line[len(STATUS):]), text
        raise GuestError(f"the guest ended without a status within {timeout_s} "
                         f"s; its console:\n{text[-4000:]}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    script = pathlib.Path(sys.argv[2]).read_text()
    try:
        status, _ = Guest(sys.argv[1]).run(
            script, int(os.environ.get("GUEST_TIMEOUT_S", "600")),
            lambda line: print(line, flush=True))
    except GuestError as error:
        sys.exit(f"guest: {error}")
    sys.exit(status)


if __name__ == "__main__":
    main()
