// Package boot runs one guest from start to end.
//
// Problem: a guest that hangs must not hang its caller. Whatever happens to the lab (an interrupt, SIGKILL), no QEMU
// may continue to run.
//
// Rule: Run builds the initramfs in memory (memfd), and the frames return through a pipe. So no file needs removal, and
// two labs cannot collide. A thread that lives as long as QEMU starts it with a parent-death signal. QEMU has its own
// process group, so that an interrupt reaches the lab alone. The lab then ends QEMU and waits for it. At the limit the
// lab kills QEMU, and the error has the end of the console.
//
// Example: a plan {"argv":["sleep","3600"]} with a limit of 60 s ends after 60 s with ErrLimit and the last lines of
// the guest's console.
//
// Limits: up to 64 KiB of console text, up to 1 GiB of files from the guest.
//
// Sources: prctl(2) PR_SET_PDEATHSIG (which the kernel sends per thread, hence the locked one), memfd_create(2),
// proc_pid_fd(5).
package boot
