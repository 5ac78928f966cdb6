package irqhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/irq"
)

// tree is a fake /proc with two interrupts and the files beside them.
func tree(t *testing.T) (proc string, h Host) {
	t.Helper()
	proc = t.TempDir()
	for name, text := range map[string]string{
		"irq/default_smp_affinity": "3,0000000f\n", "irq/7/smp_affinity_list": "0-3\n", "irq/12/smp_affinity_list": "2\n",
		"irq/12/smp_affinity": "4\n", "irq/2/node": "0\n", "irq/007/smp_affinity_list": "0\n",
	} {
		file := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return proc, New(proc)
}

func TestHost(t *testing.T) {
	proc, h := tree(t)
	interrupts, err := h.Interrupts()
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(interrupts); got != "[{7 0-3} {12 2}]" {
		t.Errorf("interrupts %s", got)
	}
	if got, err := h.Read(irq.Default); got != "0-3,32-33" || err != nil {
		t.Errorf("default %q, %v", got, err)
	}
	for _, c := range []struct{ file, list, text string }{
		{irq.File(7), "1,2,3", "1-3\n"}, {irq.Default, "0,32", "1,00000001\n"},
	} {
		if err := h.Write(c.file, c.list); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(filepath.Join(proc, "irq", c.file)); string(got) != c.text {
			t.Errorf("%s holds %q, want %q", c.file, got, c.text)
		}
	}
	if err := h.Write(irq.File(7), ""); err == nil {
		t.Error("an interrupt was left without a CPU")
	}
	if _, err := h.Read(irq.File(99)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an interrupt that is not there: %v", err)
	}
	for _, bad := range []string{"../../etc/passwd", "7/smp_affinity", "7/../12/smp_affinity_list", "007/smp_affinity_list", ""} {
		if _, err := h.Read(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
		if err := h.Write(bad, "0"); err == nil {
			t.Errorf("%q was written", bad)
		}
	}
	a, _ := h.ID(irq.File(7))
	b, _ := h.ID(irq.File(12))
	if a == b || a == 0 {
		t.Errorf("ids %d and %d", a, b)
	}
}

func TestRefused(t *testing.T) {
	for _, errno := range []error{unix.EIO, unix.EPERM, unix.EINVAL, unix.ENOSPC} {
		err := refused(&fs.PathError{Op: "write", Path: "x", Err: errno})
		if !errors.Is(err, irq.ErrRefused) || !errors.Is(err, errno) {
			t.Errorf("%v: %v", errno, err)
		}
	}
	if errors.Is(refused(unix.EACCES), irq.ErrRefused) || refused(nil) != nil {
		t.Error("a missing right is no refusal by the interrupt, and neither is success")
	}
}
