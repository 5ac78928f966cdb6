// Package boot runs one guest from start to end.
//
// Problem: a guest that hangs must not hang its caller, and whatever happens to
// the lab (an interrupt, SIGKILL), no QEMU may be left running.
//
// Rule: the initramfs is put together in memory (memfd), the frames come back
// through a pipe, so that there is no file to clean away and two labs cannot
// collide. QEMU is started with a parent-death signal from a thread that lives
// as long as it does, in a process group of its own, so that an interrupt
// reaches the lab alone, which ends QEMU and waits for it. At the limit QEMU
// is killed and the error carries the end of the console.
//
// Example: a plan {"argv":["sleep","3600"]} with a limit of 60 s ends after
// 60 s with ErrLimit and the last lines of the guest's console.
//
// Limits: console text is kept up to 64 KiB, files from the guest up to 1 GiB.
//
// Sources: prctl(2) PR_SET_PDEATHSIG (which goes by thread, hence the locked
// one), memfd_create(2), proc_pid_fd(5).
package boot
