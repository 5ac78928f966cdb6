package irq

import (
	"errors"

	"k8s.io/utils/cpuset"
)

// FS is what is read and written of interrupts; values are CPU lists ("0-3,8") for every file, also where the kernel
// has a mask. Errors wrap fs.ErrNotExist where the interrupt is gone.
type FS interface {
	// Interrupts are all that have a file of their own, by number.
	Interrupts() ([]Interrupt, error)
	Read(file string) (string, error)
	// Write wraps ErrRefused where this interrupt does not take these CPUs.
	Write(file, list string) error
	// ID tells one interrupt from a later one under the same number.
	ID(file string) (uint64, error)
}

// ErrRefused is the kernel's answer for an interrupt that cannot be moved: a managed one, or one of a CPU itself; or
// that those CPUs have no room for.
var ErrRefused = errors.New("the kernel does not let this interrupt be moved (managed, bound to a CPU, or no room there)")

// Interrupt is one line of interrupts and where it may go.
type Interrupt struct {
	Number int
	CPUs   cpuset.CPUSet
}
