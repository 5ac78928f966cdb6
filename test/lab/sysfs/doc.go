// Package sysfs saves the part of /sys that describes how a machine's CPUs are arranged, as one small text file.
//
// Problem: tests of code that reads topologies need trees of real kernels, with their odd and missing files. An
// author's idea of such a tree is not enough.
//
// Rule: Capture writes one line per file, its path and its text quoted as in Go; Parse makes a file system of it.
// Capture saves only the files that say how CPUs are arranged. Lines that begin with # say where a tree comes from.
//
// Example:
//
//	# Linux 6.18.15 under QEMU 10.0, -smp 16,sockets=2,...
//	devices/system/cpu/online "0-15\n"
//	devices/system/cpu/cpu0/topology/core_id "0\n"
//
// Limits: 8 MiB and 200,000 files; symbolic links are left out.
//
// Sources: kernel Documentation/ABI/testing/sysfs-devices-system-cpu and admin-guide/cputopology.rst.
package sysfs
