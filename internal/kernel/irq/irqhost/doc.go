// Package irqhost reads and writes the interrupts of this machine: [irq.FS] on /proc/irq.
package irqhost
