package holder

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// A folder without a BPF file system gets one, which goes again; one that has it is left alone, and what is not there is named.
func TestMountBPF(t *testing.T) {
	require.Root(t)
	require.Kernel(t)
	dir := t.TempDir()
	kind := func() int64 {
		var s unix.Statfs_t
		if err := unix.Statfs(dir, &s); err != nil {
			t.Fatal(err)
		}
		return s.Type
	}
	before := kind()
	undo, err := mountBPF(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := mountBPF(dir)
	if err != nil {
		t.Fatal(err)
	}
	again()
	if kind() != unix.BPF_FS_MAGIC {
		t.Errorf("it is %x", kind())
	}
	undo()
	if kind() != before {
		t.Errorf("after its end it is %x", kind())
	}
	if _, err := mountBPF(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "mount -t bpf bpf") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
