// Package schedhost reads and sets the scheduling policies of this machine's threads: [schedpolicy.FS] on the kernel.
package schedhost
