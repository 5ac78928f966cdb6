// Package cpio writes the initramfs that a Linux kernel unpacks at boot.
//
// Problem: the guest needs its files at boot, and cpio(1) with a staging folder
// and root (for device nodes) is more than a machine should need for that.
//
// Rule: the "newc" format of the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst: per entry a
// header of 6+13*8 characters, the name with a NUL padded to 4 bytes, the data
// padded to 4 bytes; at the end an entry named TRAILER!!!. The archive is not
// compressed: unpacking costs the guest more than reading.
//
// Example: File("etc/hostname", 0o644, "lab\n") writes the entries etc and
// etc/hostname: 110 bytes of header, "etc/hostname\0" and 1 byte to fill up to
// 124, then 4 bytes of data.
//
// Limits: a file's size is below 4 GiB, as the format has 32 bits for it;
// owner is root and time is 0 throughout, so that the same files give the same
// archive; no hard links.
package cpio
