package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// recipe counts changes to the cache's content; parts of another recipe are fetched again.
const recipe = 1

// Cache is the folder that holds the lab's parts.
type Cache struct {
	Dir string
	// Log gets one line for each step that takes time or is unexpected.
	Log io.Writer

	apt *apt // once the index is read
}

// DefaultDir returns unthrottle/lab below $XDG_CACHE_HOME or ~/.cache.
func DefaultDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the lab's cache: %w; name one with --cache", err)
	}
	return filepath.Join(base, "unthrottle", "lab"), nil
}

// Manifest describes a part of the cache.
type Manifest struct {
	Recipe  int    `json:"recipe"`
	Wanted  string `json:"wanted"` // the pin
	Version string `json:"version"`
	Note    string `json:"note,omitempty"` // set if Version is not the pin
}

// Emulator is QEMU with its libraries and tools.
type Emulator struct {
	Manifest
	Root string
}

// Kernel is a kernel ready to boot.
type Kernel struct {
	Manifest
	Vmlinux string
	Modules []string // in the order of loading, for the port to the host
}

// Emulator returns QEMU, and fetches it if it is missing.
func (c *Cache) Emulator(ctx context.Context) (Emulator, error) {
	e := Emulator{Root: filepath.Join(c.Dir, "qemu")}
	err := c.part(ctx, e.Root, qemuPin, &e.Manifest, c.fetchEmulator)
	return e, err
}

// Kernel returns a kernel of a line, and fetches it if it is missing.
func (c *Cache) Kernel(ctx context.Context, line Line) (Kernel, error) {
	dir := filepath.Join(c.Dir, "kernel-"+line.Name)
	k := Kernel{Vmlinux: filepath.Join(dir, "vmlinux")}
	err := c.part(ctx, dir, line.Pin, &k.Manifest, func(ctx context.Context, into string) (string, string, error) {
		return c.fetchKernel(ctx, line, into)
	})
	if err != nil {
		return k, err
	}
	k.Modules, err = filepath.Glob(filepath.Join(dir, "modules", "*.ko"))
	return k, err
}

// Cached returns the manifest of a line's part of the cache, if it exists.
func (c *Cache) Cached(line Line) (Manifest, bool) {
	return readManifest(filepath.Join(c.Dir, "kernel-"+line.Name), line.Pin)
}

// part makes sure that dir holds the part that the pin names.
func (c *Cache) part(ctx context.Context, dir, pin string, m *Manifest,
	fetch func(ctx context.Context, into string) (version, note string, err error)) error {
	var ok bool
	if *m, ok = readManifest(dir, pin); ok {
		return nil
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if *m, ok = readManifest(dir, pin); ok {
		return nil // another lab fetched it while we waited
	}
	temporary, err := os.MkdirTemp(c.Dir, "fetching.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	fmt.Fprintf(c.Log, "lab: fetching %s %s\n", filepath.Base(dir), pin)
	version, note, err := fetch(ctx, temporary)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", filepath.Base(dir), err)
	}
	*m = Manifest{Recipe: recipe, Wanted: pin, Version: version, Note: note}
	if note != "" {
		fmt.Fprintf(c.Log, "lab: %s\n", note)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(temporary, "manifest.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(temporary, dir)
}

func readManifest(dir, pin string) (Manifest, bool) {
	var m Manifest
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil || json.Unmarshal(text, &m) != nil {
		return Manifest{}, false
	}
	return m, m.Recipe == recipe && m.Wanted == pin
}

// lock waits until no other lab fetches into this cache.
func (c *Cache) lock() (unlock func(), err error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(c.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

func (c *Cache) index(ctx context.Context) (*apt, error) {
	if c.apt == nil {
		a, err := newAPT(ctx, filepath.Join(c.Dir, "apt"))
		if err != nil {
			return nil, err
		}
		c.apt = a
	}
	return c.apt, nil
}

func (c *Cache) fetchEmulator(ctx context.Context, into string) (version, note string, err error) {
	a, err := c.index(ctx)
	if err != nil {
		return "", "", err
	}
	versions, err := a.versions(ctx, qemuPackage, qemuSuite)
	if err != nil {
		return "", "", err
	}
	version, note, err = choose(qemuPin, qemuSuite, versions, func(v string) bool { return strings.HasPrefix(v, qemuLine) })
	if err != nil {
		return "", "", err
	}
	packages := []string{qemuPackage + "=" + version}
	for _, name := range helperPackages() {
		packages = append(packages, name+"/"+qemuSuite)
	}
	return version, note, a.unpack(ctx, into, true, packages...)
}

func (c *Cache) fetchKernel(ctx context.Context, line Line, into string) (version, note string, err error) {
	a, err := c.index(ctx)
	if err != nil {
		return "", "", err
	}
	names, err := a.names(ctx, line.Prefix+line.Name+".")
	if err != nil {
		return "", "", err
	}
	var releases []string
	for _, name := range names {
		if release, ok := strings.CutSuffix(strings.TrimPrefix(name, line.Prefix), flavour); ok {
			releases = append(releases, release)
		}
	}
	version, note, err = choose(line.Pin, line.Suite, releases, func(string) bool { return true })
	if err != nil {
		return "", "", err
	}
	tree := filepath.Join(into, "package")
	if err := a.unpack(ctx, tree, false, line.packageName(version)); err != nil {
		return "", "", err
	}
	// The tools that unpack the image belong to the emulator. It was fetched before, and its lock is the one that we
	// hold.
	tools := Emulator{Root: filepath.Join(c.Dir, "qemu")}
	image, err := findFile(tree, "vmlinuz")
	if err != nil {
		return "", "", err
	}
	if err := extractVmlinux(ctx, image, filepath.Join(into, "vmlinux"), tools.Command); err != nil {
		return "", "", err
	}
	return version, note, errors.Join(
		keepModules(tree, filepath.Join(into, "modules")),
		os.RemoveAll(tree))
}

// findFile finds the file whose name begins with prefix. From 7.1 on kernel packages have the image among the modules
// instead of in /boot.
func findFile(tree, prefix string) (string, error) {
	found := ""
	err := filepath.WalkDir(tree, func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasPrefix(d.Name(), prefix) {
			found = file
			return filepath.SkipAll
		}
		return err
	})
	if err == nil && found == "" {
		err = fmt.Errorf("no %s* in the package", prefix)
	}
	return found, err
}

// portModules returns the modules of the virtio-serial port, each after its dependencies. A kernel that has them built
// in has no such files.
func portModules() []string {
	return []string{"virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_console"}
}

func keepModules(tree, into string) error {
	if err := os.Mkdir(into, 0o755); err != nil {
		return err
	}
	wanted := portModules()
	return filepath.WalkDir(tree, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i := slices.Index(wanted, strings.TrimSuffix(d.Name(), ".ko"))
		if i < 0 || !d.Type().IsRegular() || !strings.HasSuffix(d.Name(), ".ko") {
			return nil
		}
		return os.Rename(file, filepath.Join(into, fmt.Sprintf("%d-%s", i, d.Name())))
	})
}

// Command makes a command of one of the emulator's programs, with its own loader and libraries.
func (e Emulator) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	args = append([]string{"--library-path", strings.Join(e.paths("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"), ":"),
		e.paths("usr/bin/"+program, "bin/"+program)[0]}, args...)
	return exec.CommandContext(ctx, e.paths("usr/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2")[0], args...)
}

// Busybox returns the path of the static busybox.
func (e Emulator) Busybox() string { return e.paths("usr/bin/busybox", "bin/busybox")[0] }

// DataDirs returns the folders of QEMU's firmware.
func (e Emulator) DataDirs() []string {
	return e.paths("usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu")
}

// paths returns the paths that exist in the emulator's folder; it always returns the first one.
func (e Emulator) paths(below ...string) []string {
	var found []string
	for _, p := range below {
		full := filepath.Join(e.Root, p)
		if _, err := os.Stat(full); err == nil {
			found = append(found, full)
		}
	}
	if found == nil {
		found = []string{filepath.Join(e.Root, below[0])}
	}
	return found
}
