// Package guest is the first process of the lab's guest.
//
// Problem: this process must mount the file systems and start the commands. It must separate their output from the
// kernel's messages and know their exit status. It must kill the processes that they leave, and switch the machine off,
// even if the command hangs or the host has gone.
//
// Rule: the lab's own binary is /init. It follows the plan in wire.PlanPath step by step, and sends events as frames
// through the virtio-serial port named wire.PortName. As process 1 it reaps every orphan. It kills a step's remaining
// processes before the next one starts. Then it sends the files of wire.OutDir and reports the end: the host then ends
// the machine. Without a host it powers off by itself.
//
// Example: a plan with one step {"argv":["nproc"]} in a guest of 16 CPUs sends booted, stdout "16\n", exit {"code":0},
// done.
//
// A node (`lab run --node`) has its root on a disk, with a distribution's own init: the lab's binary mounts that disk and
// becomes that init, which starts the binary again as a service that follows the plan. After a reboot the service begins
// with the first step again.
//
// Limits: the guest has no network but loopback, no disk unless it is a node, and forgets everything. On cgroup v2 all controllers
// are on for the children of the root. On v1, whose cpuset needs a kernel before 6.12, each controller has its own
// hierarchy.
//
// Sources: kernel Documentation/admin-guide/cgroup-v2.rst, drivers/char/virtio_console.c; signal(7) for the rules of
// process 1.
package guest
