// Package irq reads and sets which CPUs interrupts go to: /proc/irq/N/smp_affinity_list, and default_smp_affinity, which
// interrupts get that are requested later.
//
// An interrupt handler runs on an exclusive CPU like a neighbour that no cpuset keeps out. Some interrupts cannot be
// moved: those of a CPU itself, and managed ones (a queue per CPU of NVMe and many network cards), which the kernel
// spreads by itself. The kernel refuses a write to them (kernel/irq/proc.c, write_irq_affinity: EIO, EPERM since 6.13);
// that is ErrRefused here, and no failure of the host.
//
// A list that was accepted may take force only with the next interrupt, and smp_affinity_list shows it at once.
// irqbalance writes the same files every ten seconds.
package irq
