package fetch

import (
	"fmt"
	"strings"
)

// Line is a kernel on offer.
type Line struct {
	Name string // "6.18": the value of --kernel
	Pin  string // release before "-cloud-amd64"
	// Prefix of the package that holds the kernel image.
	Prefix string
	Suite  string
	// What its build has, read from its configuration and confirmed in the guest.
	SchedExt, BTF, PSI, CpusetV1 bool
	Era                          string // of CFS bandwidth control
}

// DefaultLine is the kernel of a guest that names no other.
const DefaultLine = "6.18"

// Lines returns the kernels on offer, the default first.
func Lines() []Line {
	return []Line{
		{Name: "6.18", Pin: "6.18.15+deb13", Prefix: "linux-image-", Suite: "trixie-backports", SchedExt: true, BTF: true, PSI: true,
			Era: "tasks throttled on return to user mode"},
		{Name: "6.12", Pin: "6.12.107+deb13", Prefix: "linux-image-", Suite: "trixie", BTF: true, PSI: true,
			Era: "EEVDF, run queues throttled at once"},
		{Name: "6.1", Pin: "6.1.0-50", Prefix: "linux-image-", Suite: "bookworm", BTF: true, PSI: true, CpusetV1: true,
			Era: "CFS, all period timers in phase"},
		{Name: "7.2", Pin: "7.2.12+deb13", Prefix: "linux-binary-", Suite: "trixie-backports", SchedExt: true, BTF: true, PSI: true,
			Era: "throttled while accounting"},
	}
}

// FindLine returns the line of that name.
func FindLine(name string) (Line, error) {
	var names []string
	for _, l := range Lines() {
		if l.Name == name {
			return l, nil
		}
		names = append(names, l.Name)
	}
	return Line{}, fmt.Errorf("kernel %q: on offer are %s, or the path of a kernel image", name, strings.Join(names, ", "))
}

const flavour = "-cloud-amd64"

func (l Line) packageName(release string) string { return l.Prefix + release + flavour }

// The emulator's packages: the pinned one, whose line stays, and its helpers. All come from one suite, so that their
// libraries agree.
const (
	qemuPackage = "qemu-system-x86"
	qemuPin     = "1:10.0.13+ds-0+deb13u1"
	qemuLine    = "1:10."
	qemuSuite   = "trixie"
)

// helperPackages returns busybox for the guest, and zstd and lz4, which unpack kernels.
func helperPackages() []string { return []string{"busybox-static", "zstd", "lz4"} }

// suites returns the suites that the private sources list.
func suites() []string { return []string{"trixie", "trixie-backports", "bookworm"} }

// choose picks the pinned candidate, or else the newest of the same line (the candidates that match). note is empty for
// the pin.
func choose(pin, suite string, candidates []string, sameLine func(string) bool) (got, note string, err error) {
	for _, c := range candidates {
		if c == pin {
			return c, "", nil
		}
		if sameLine(c) && (got == "" || newer(c, got)) {
			got = c
		}
	}
	if got == "" {
		return "", "", fmt.Errorf("neither %s nor another of its line is in %s", pin, suite)
	}
	return got, fmt.Sprintf("%s has left %s; took %s", pin, suite, got), nil
}

// newer compares releases such as 6.18.9+deb13 and 6.18.15+deb13: runs of digits by value, all other characters by
// bytes. That orders the releases of one line. It is not dpkg's full order (no ~, no epochs that differ).
func newer(a, b string) bool {
	for a != "" && b != "" {
		da, ra := cutDigits(a)
		db, rb := cutDigits(b)
		if da != "" && db != "" {
			da, db = strings.TrimLeft(da, "0"), strings.TrimLeft(db, "0")
			if len(da) != len(db) {
				return len(da) > len(db)
			}
			if da != db {
				return da > db
			}
			a, b = ra, rb
			continue
		}
		if a[0] != b[0] {
			return a[0] > b[0]
		}
		a, b = a[1:], b[1:]
	}
	return len(a) > len(b)
}

func cutDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}
