package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// nodeRecipe names how a node's image is made; with the packages, the image of another recipe is built again.
const nodeRecipe = "trixie-3"

// nodePackages are what a node of Kubernetes has from its distribution, on top of Debian's smallest variant.
var nodePackages = []string{"systemd", "systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd", "udev", "kmod", "mount",
	"iproute2", "nftables", "conntrack", "procps", "apparmor", "runc", "crun", "busybox-static", "ca-certificates", "python3-minimal"}

// nodeFiles are files of /etc that would be this machine's.
var nodeFiles = map[string]string{"hostname": "node\n", "hosts": "127.0.0.1 localhost\n", "resolv.conf": ""}

// nodeDiskBytes is the size of a node's disk. The file is sparse: about 400 MB of it are written.
const nodeDiskBytes = "12G"

// Node is a Debian as a disk.
type Node struct {
	Manifest
	// Disk is the image of an ext4 file system; a node's has the kernel's modules.
	Disk string
	// Modules are those that the kernel needs to read the disk, compressed as their package has them.
	Modules []string
}

// Node returns the disk of a node with the modules of a kernel, and builds it if it is missing. That takes root, mmdebstrap
// and about two minutes.
func (c *Cache) Node(ctx context.Context, line Line, kernel Kernel) (Node, error) {
	dir := filepath.Join(c.Dir, "node-"+line.Name)
	n := Node{Disk: filepath.Join(dir, "root.ext4")}
	recipe := strings.Join(append([]string{nodeRecipe, kernel.Version}, nodePackages...), " ")
	err := c.part(ctx, dir, recipe, &n.Manifest, func(ctx context.Context, into string) (string, string, error) {
		return kernel.Version, "", c.buildNode(ctx, line, kernel, into)
	})
	if err != nil {
		return n, err
	}
	n.Modules, err = filepath.Glob(filepath.Join(dir, "*.ko*"))
	return n, err
}

func (c *Cache) buildNode(ctx context.Context, line Line, kernel Kernel, into string) error {
	return c.buildDisk(ctx, line, kernel, into, qemuSuite, nodePackages, []string{"doc", "man", "locale", "info"},
		func(root, modules string) error {
			// lib is a link to usr/lib in root.
			err := os.CopyFS(filepath.Join(root, "usr", "lib", "modules"), os.DirFS(modules))
			if err == nil {
				_, err = output(ctx, "chroot", root, "depmod", kernel.Version+flavour)
			}
			return err
		})
}

// buildDisk makes a disk of a suite's packages, and keeps the modules that a kernel needs to read it. Of /usr/share it leaves out what is
// unread. more gets the folders of the disk's files and of the kernel's modules.
func (c *Cache) buildDisk(ctx context.Context, line Line, kernel Kernel, into, suite string, packages, unread []string,
	more func(root, modules string) error) error {
	if os.Geteuid() != 0 {
		return errors.New("the image of a disk needs root: sudo bin/lab")
	}
	for tool, from := range map[string]string{"mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w; apt-get install %s", err, from)
		}
	}
	a, err := c.index(ctx)
	if err != nil {
		return err
	}
	root, unpacked := filepath.Join(into, "root"), filepath.Join(into, "package")
	args := []string{"--variant=minbase", "--include=" + strings.Join(packages, ","), "--keyring=" + debianKeyring}
	for _, folder := range unread {
		args = append(args, "--dpkgopt=path-exclude=/usr/share/"+folder+"/*")
	}
	if _, err := output(ctx, "mmdebstrap", append(args, suite, root, "deb "+a.repository+" "+suite+" main")...); err != nil {
		return err
	}
	if err := a.unpack(ctx, unpacked, false, line.packageName(kernel.Version)); err != nil {
		return err
	}
	modules := filepath.Join(unpacked, "usr", "lib", "modules")
	if _, err := os.Stat(modules); err != nil { // older packages
		modules = filepath.Join(unpacked, "lib", "modules")
	}
	if err := errors.Join(os.Mkdir(filepath.Join(root, "lab"), 0o755), keepDiskModules(modules, into), more(root, modules)); err != nil {
		return err
	}
	for file, text := range nodeFiles {
		if err := os.WriteFile(filepath.Join(root, "etc", file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if _, err := output(ctx, "mke2fs", "-q", "-t", "ext4", "-d", root, filepath.Join(into, "root.ext4"), nodeDiskBytes); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(root), os.RemoveAll(unpacked))
}

// keepDiskModules copies the module of virtio disks, where the kernel does not have it built in. All others of this disk's
// kernels are, ext4 too.
func keepDiskModules(from, into string) error {
	found, err := filepath.Glob(filepath.Join(from, "*", "kernel", "drivers", "block", "virtio_blk.ko*"))
	for _, name := range found {
		text, bad := os.ReadFile(name)
		err = errors.Join(err, bad, os.WriteFile(filepath.Join(into, filepath.Base(name)), text, 0o644))
	}
	return err
}
