// Package fetch brings the lab's parts into a cache folder: QEMU with every library it needs, busybox, and kernels.
//
// Problem: the lab must run on machines that have none of these, and must not change the machine. It installs nothing
// and touches no configuration, and this program knows no host name of a package mirror.
//
// Rule: apt names the place from which this machine takes Debian packages. A private configuration (own sources, lists,
// state and an empty dpkg status) makes apt read our suites from that same place, with signatures checked as usual.
// Because apt sees nothing installed, it resolves QEMU's libraries down to the C library. So the emulator runs through
// its own dynamic loader, on any distribution. dpkg-deb unpacks into the cache.
//
// pins.go pins the versions. If a pin has left its suite, fetch takes the newest package of the same line, and Note
// says so.
//
// Example: 6.18 is pinned to linux-image-6.18.15+deb13-cloud-amd64 of trixie-backports. Once that suite has only
// 6.18.21, fetch takes that one, with the note "6.18.15+deb13 has left trixie-backports; took 6.18.21+deb13".
//
// A fetched part is complete or absent: fetch builds it in a temporary folder and renames it. A lock lets two labs
// share a cache. A full cache needs no network; a part is looked up again only when its pin changes.
//
// Limits: amd64; machines with apt and dpkg-deb whose sources have a Debian archive. Kernels are compressed with zstd
// or LZ4.
//
// Sources: apt.conf(5), apt-get(8) on indextargets, the kernel's Documentation/arch/x86/boot.rst and
// scripts/extract-vmlinux.
package fetch
