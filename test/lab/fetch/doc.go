// Package fetch brings the lab's parts into a cache folder: QEMU with every
// library it needs, busybox, and kernels.
//
// Problem: the lab must run on machines that have none of these, and must not
// change the machine: nothing installed, no configuration touched, no host name
// of a package mirror known to this program.
//
// Rule: apt is asked where this machine takes Debian packages from. With a
// private configuration (own sources, lists, state and an empty dpkg status)
// the suites we need are read from that same place and signatures are checked
// as ever. As apt sees nothing installed, it resolves QEMU's libraries down to
// the C library; so the emulator runs through its own dynamic loader, whatever
// distribution the machine has. dpkg-deb unpacks into the cache.
//
// Versions are pinned in pins.go. If a pin has left its suite, the newest
// package of the same line is taken and Note says so.
//
// Example: 6.18 is pinned to linux-image-6.18.15+deb13-cloud-amd64 of
// trixie-backports. Once that suite has only 6.18.21, that one is taken, with
// the note "6.18.15+deb13 has left trixie-backports; took 6.18.21+deb13".
//
// What is fetched is complete or absent: it is put together in a temporary
// folder and renamed. A lock lets two labs share a cache. A full cache needs no
// network; no part is looked up again until its pin changes.
//
// Limits: amd64; machines with apt and dpkg-deb whose sources have a Debian
// archive. Kernels are compressed with zstd or LZ4.
//
// Sources: apt.conf(5), apt-get(8) on indextargets, the kernel's
// Documentation/arch/x86/boot.rst and scripts/extract-vmlinux.
package fetch
