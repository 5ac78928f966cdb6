// Package guest is the first process of the lab's guest.
//
// Problem: something has to mount the file systems, start the commands, keep
// their output apart from the kernel's messages, know their exit status, clear
// away what they left running, and switch the machine off, also when the
// command hangs or the host has gone.
//
// Rule: the lab's own binary is /init. It follows the plan in wire.PlanPath
// step by step, sends what happens as frames through the virtio-serial port
// named wire.PortName, reaps every orphan (it is process 1), kills what a step
// left behind before the next one starts, sends the files of wire.OutDir, and
// says that it is done: the host then ends the machine. Without a host it
// powers off by itself.
//
// Example: a plan with one step {"argv":["nproc"]} in a guest of 16 CPUs sends
// booted, stdout "16\n", exit {"code":0}, done.
//
// Limits: the guest has no network but loopback, no disk, and keeps everything
// in memory. On cgroup v2 all controllers are on for the children of the root;
// on v1, which needs a kernel before 6.12 for cpuset, each controller has a
// hierarchy of its own.
//
// Sources: kernel Documentation/admin-guide/cgroup-v2.rst, drivers/char/
// virtio_console.c; signal(7) for what process 1 may and must do.
package guest
