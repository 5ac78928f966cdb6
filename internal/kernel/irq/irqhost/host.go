package irqhost

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/topology"
)

// maxInterrupts bounds how many are looked at.
const maxInterrupts = 1 << 14

// maxText bounds one file.
const maxText = 1 << 16

// Host is a machine's /proc/irq.
type Host struct{ dir string }

// New takes where proc is mounted.
func New(proc string) Host { return Host{filepath.Join(proc, "irq")} }

// Interrupts lists them; those that end meanwhile, and those without an affinity (no SMP support in their chip), are
// left out.
func (h Host) Interrupts() ([]irq.Interrupt, error) {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return nil, fmt.Errorf("interrupts: %w", err)
	}
	var interrupts []irq.Interrupt
	for _, e := range entries {
		n, ok := irq.Number(e.Name())
		if !ok {
			continue
		}
		if len(interrupts) == maxInterrupts {
			return nil, fmt.Errorf("%s: more than %d interrupts", h.dir, maxInterrupts)
		}
		text, err := h.Read(irq.File(n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		set, err := topology.ParseList(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.path(irq.File(n)), err)
		}
		interrupts = append(interrupts, irq.Interrupt{Number: n, CPUs: set})
	}
	slices.SortFunc(interrupts, func(a, b irq.Interrupt) int { return a.Number - b.Number })
	return interrupts, nil
}

func (h Host) path(file string) string { return filepath.Join(h.dir, file) }

// open opens a file that IsFile knows.
func (h Host) open(file string, flag int) (*os.File, error) {
	if !irq.IsFile(file) {
		return nil, fmt.Errorf("%.80q is no file of an interrupt's CPUs", file)
	}
	return os.OpenFile(h.path(file), flag, 0)
}

// Read returns the list in a file.
func (h Host) Read(file string) (string, error) {
	f, err := h.open(file, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText))
	if err != nil {
		return "", gone(err)
	}
	set, err := irq.List(file, string(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", h.path(file), err)
	}
	return set.String(), nil
}

// Write writes a list to a file. It refuses an empty list, because an interrupt needs a CPU.
func (h Host) Write(file, text string) error {
	set, err := topology.ParseList(text)
	if err != nil {
		return fmt.Errorf("%.80s: %w", file, err)
	}
	if set.IsEmpty() {
		return fmt.Errorf("%.80s: an interrupt needs a CPU", file)
	}
	value := set.String()
	if file == irq.Default {
		value = irq.FormatMask(set)
	}
	f, err := h.open(file, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value + "\n")
	return errors.Join(refused(gone(err)), f.Close())
}

// ID returns the inode of the file: proc makes a new one for each interrupt that is set up.
func (h Host) ID(file string) (uint64, error) {
	if !irq.IsFile(file) {
		return 0, fmt.Errorf("%.80q is no file of an interrupt's CPUs", file)
	}
	info, err := os.Stat(h.path(file))
	if err != nil {
		return 0, err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino, nil
	}
	return 0, nil
}

// gone recognises an interrupt that ended between open and read or write.
func gone(err error) error {
	if errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}

// refused recognises the answers of write_irq_affinity and of the chips behind it. EPERM is one of them: for a user
// without the right, open fails first.
func refused(err error) error {
	for _, errno := range []error{unix.EIO, unix.EPERM, unix.EINVAL, unix.ENOSPC} {
		if errors.Is(err, errno) {
			return fmt.Errorf("%w: %w", irq.ErrRefused, err)
		}
	}
	return err
}
