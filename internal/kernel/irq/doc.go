// Package irq reads and sets which CPUs interrupts go to: /proc/irq/N/smp_affinity_list, and default_smp_affinity for
// interrupts that are requested later.
//
// An interrupt handler runs on an exclusive CPU like a neighbour that no cpuset excludes. Some interrupts cannot be
// moved. Those are a CPU's own, and managed ones (a queue per CPU of NVMe and many network cards), which the kernel
// distributes itself. The kernel refuses a write to them (kernel/irq/proc.c, write_irq_affinity: EIO, EPERM since
// 6.13). That is ErrRefused here, and no failure of the host.
//
// An accepted list may take effect only with the next interrupt, although smp_affinity_list shows it immediately.
// irqbalance writes the same files every ten seconds.
package irq
