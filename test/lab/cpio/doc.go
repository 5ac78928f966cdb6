// Package cpio writes the initramfs that a Linux kernel unpacks at boot.
//
// Problem: the guest needs its files at boot. cpio(1) would need a staging folder and root rights for device nodes.
//
// Rule: the package writes the "newc" format of the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst. Each entry has a header of 6+13*8 characters, the name
// with a NUL padded to 4 bytes, and the data padded to 4 bytes. An entry named TRAILER!!! ends the archive. The archive
// is not compressed: unpacking costs the guest more than reading.
//
// Example: File("etc/hostname", 0o644, "lab\n") writes the entries etc and etc/hostname. The latter has 110 bytes of
// header, "etc/hostname\0", 1 byte to fill up to 124, and 4 bytes of data.
//
// Limits: a file's size is below 4 GiB, because the format has 32 bits for it. Owner is root and time is 0 throughout,
// so that the same files make the same archive. Hard links are not supported.
package cpio
