package apply

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestProcOfOurselves(t *testing.T) {
	p := NewProc("/proc")
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &mine); err != nil {
		t.Fatal(err)
	}
	allowed, err := p.Allowed(os.Getpid())
	if err != nil || allowed.Size() != mine.Count() {
		t.Errorf("allowed %s, %v; the kernel says %d CPUs", allowed, err, mine.Count())
	}
	if kernel, err := p.KernelThread(os.Getpid()); err != nil || kernel {
		t.Errorf("a kernel thread: %v, %v", kernel, err)
	}
	if tids, err := p.Threads(os.Getpid()); err != nil || !slices.Contains(tids, os.Getpid()) {
		t.Errorf("threads %v, %v", tids, err)
	}
	if _, err := p.Allowed(1 << 30); err == nil {
		t.Error("a process that cannot be has CPUs")
	}
}

func FuzzProcFiles(f *testing.F) {
	f.Add("Name:\tx\nCpus_allowed_list:\t0-3,8\n")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := parseAllowed(text)
		if err == nil && !strings.Contains(text, "Cpus_allowed_list:") {
			t.Errorf("%q has CPUs %s", text, set)
		}
	})
}
