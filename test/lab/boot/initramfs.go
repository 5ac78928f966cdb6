package boot

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/cpio"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// File copies a file of this machine into the guest, or a folder with its content.
type File struct {
	In   string // path in the guest
	From string // path here
}

// initramfs writes the guest's files into memory.
func (g Guest) initramfs() (*os.File, error) {
	first := g.Init
	if first == "" {
		var err error
		if first, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	if err := checkStatic(first); err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("unthrottle-lab-initramfs", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for the initramfs: %w", err)
	}
	f := os.NewFile(uintptr(fd), "initramfs")
	if err := g.writeInitramfs(cpio.NewWriter(f), first); err != nil {
		f.Close()
		return nil, fmt.Errorf("initramfs: %w", err)
	}
	return f, nil
}

func (g Guest) writeInitramfs(w *cpio.Writer, first string) error {
	plan, err := json.Marshal(g.Plan)
	if err != nil {
		return err
	}
	write := []func() error{
		// The kernel opens it for init before any file system is mounted.
		func() error { return w.CharDevice("dev/console", 0o600, 5, 1) },
		func() error { return w.HostFile("init", first) },
		func() error { return w.HostFile("bin/busybox", g.Busybox) },
		func() error { return w.Link("sbin", "bin") },
		func() error { return w.File(wire.PlanPath, 0o644, plan) },
	}
	for _, module := range g.Modules {
		write = append(write, func() error {
			return w.HostFile(path.Join("lab/modules", filepath.Base(module)), module)
		})
	}
	for _, file := range g.Files {
		write = append(write, func() error {
			if info, err := os.Stat(file.From); err == nil && info.IsDir() {
				return w.HostTree(file.In, file.From)
			}
			return w.HostFile(file.In, file.From)
		})
	}
	for _, step := range append(write, w.Close) {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// checkStatic refuses a program that needs a loader, which the guest does not have.
func checkStatic(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is dynamically linked and cannot be the guest's init; build it with CGO_ENABLED=0 (make lab)", program)
		}
	}
	return nil
}
