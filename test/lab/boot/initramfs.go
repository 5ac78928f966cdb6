package boot

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/u-root/u-root/pkg/cpio"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// File copies a file of this machine into the guest, or the files of a folder and of those in it.
type File struct {
	In   string // path in the guest
	From string // path here
}

// initramfs writes the guest's files into memory.
func (g Guest) initramfs() (*os.File, error) {
	records, err := g.records()
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("unthrottle-lab-initramfs", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for the initramfs: %w", err)
	}
	f := os.NewFile(uintptr(fd), "initramfs")
	if err := writeArchive(f, records); err != nil {
		f.Close()
		return nil, fmt.Errorf("initramfs: %w", err)
	}
	return f, nil
}

func writeArchive(f *os.File, records []cpio.Record) error {
	out := bufio.NewWriterSize(f, 1<<20)
	archive := cpio.NewDedupWriter(cpio.Newc.Writer(out)) // a folder that is there already is not written again
	for _, r := range records {
		if err := cpio.WriteRecords(archive, append(foldersOf(r.Name), r)); err != nil {
			return err
		}
	}
	if err := cpio.WriteTrailer(archive); err != nil {
		return err
	}
	return out.Flush()
}

// foldersOf are the folders in which a name is, the outermost first.
func foldersOf(name string) (all []cpio.Record) {
	for i, r := range name {
		if r == '/' {
			all = append(all, cpio.Directory(name[:i], 0o755))
		}
	}
	return all
}

// records are what the guest finds in its root: all that it has, or what it needs until a disk is that.
func (g Guest) records() ([]cpio.Record, error) {
	first, err := g.first()
	if err != nil {
		return nil, err
	}
	plan, err := json.Marshal(g.Plan)
	if err != nil {
		return nil, err
	}
	records := []cpio.Record{
		cpio.CharDev("dev/console", 0o600, 5, 1), // the kernel opens it for init before any file system is mounted
		cpio.StaticFile(cpio.Normalize(wire.PlanPath), string(plan), 0o644),
	}
	files, modules := []File{{"init", first}}, g.Modules
	if g.Node == nil {
		records = append(records, cpio.Symlink("sbin", "bin"))
		files = append(append(files, File{"bin/busybox", g.Busybox}), g.Files...)
	} else {
		modules = append(slices.Clone(modules), g.Node.Modules...)
	}
	for _, module := range modules {
		files = append(files, File{path.Join("lab/modules", filepath.Base(module)), module})
	}
	host := cpio.NewRecorder()
	for _, file := range files {
		copied, err := file.records(host)
		if err != nil {
			return nil, err
		}
		records = append(records, copied...)
	}
	cpio.MakeAllReproducible(records)
	return records, nil
}

// first is the guest's first process, as a file of this machine.
func (g Guest) first() (string, error) {
	first := g.Init
	if first == "" {
		var err error
		if first, err = os.Executable(); err != nil {
			return "", err
		}
	}
	return first, checkStatic(first)
}

// records are a file, or those of a folder, where links stay links. What is neither is an error.
func (f File) records(host *cpio.Recorder) (all []cpio.Record, err error) {
	from, err := filepath.EvalSymlinks(f.From)
	if err != nil {
		return nil, err
	}
	return all, filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if kind := d.Type(); kind != 0 && kind != fs.ModeSymlink {
			return fmt.Errorf("%s: not a file, a folder or a link", name)
		}
		r, err := host.GetRecord(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, name)
		r.Name = cpio.Normalize(path.Join(f.In, filepath.ToSlash(below)))
		all = append(all, r)
		return err
	})
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
