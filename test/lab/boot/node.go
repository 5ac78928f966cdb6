package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// Node is a guest whose root is a distribution's, on a disk. Its own init boots it where the plan says so: then it may reboot.
type Node struct {
	// Disk is the image of its root, Modules are those that the kernel needs to read it.
	Disk    string
	Modules []string
	// Parameters are added to the kernel's.
	Parameters []string
}

// filesDisk makes the disk that has a node's files, its plan and the program that follows it, in a new folder. A node mounts it
// at wire.Dir.
func (g Guest) filesDisk(ctx context.Context) (disk string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "unthrottle-lab-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	disk = filepath.Join(dir, "files.ext4")
	if err := g.fillDisk(ctx, disk, filepath.Join(dir, "root")); err != nil {
		remove()
		return "", nil, err
	}
	return disk, remove, nil
}

// fillDisk makes the disk of a folder that it fills first.
func (g Guest) fillDisk(ctx context.Context, disk, root string) error {
	first, err := g.first()
	if err != nil {
		return err
	}
	plan, err := json.Marshal(g.Plan)
	if err != nil {
		return err
	}
	bytes := int64(64 << 20)
	for _, file := range append([]File{{wire.InitPath, first}}, g.Files...) {
		below, err := filepath.Rel(wire.Dir, file.In)
		if err != nil || !filepath.IsLocal(below) {
			return fmt.Errorf("%s: the files of a guest with a disk are below %s", file.In, wire.Dir)
		}
		size, err := copyTree(file.From, filepath.Join(root, below))
		if err != nil {
			return err
		}
		bytes += size + size/16
	}
	if err := os.WriteFile(filepath.Join(root, filepath.Base(wire.PlanPath)), plan, 0o644); err != nil {
		return err
	}
	said, err := exec.CommandContext(ctx, "mke2fs", "-q", "-t", "ext4", "-d", root, disk, fmt.Sprintf("%dk", bytes>>10)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mke2fs: %w: %s", err, strings.TrimSpace(string(said)))
	}
	return os.RemoveAll(root)
}

// copyTree copies a file or a folder, and returns the bytes of its files.
func copyTree(from, to string) (bytes int64, err error) {
	info, err := os.Stat(from)
	if err != nil {
		return 0, err
	}
	if info.IsDir() {
		entries, err := os.ReadDir(from)
		errs := []error{err, os.MkdirAll(to, 0o755)}
		for _, entry := range entries {
			size, err := copyTree(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name()))
			bytes, errs = bytes+size, append(errs, err)
		}
		return bytes, errors.Join(errs...)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return 0, err
	}
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return 0, err
	}
	bytes, err = io.Copy(out, in)
	return bytes, errors.Join(err, out.Close())
}
