package boot

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A node's QEMU gets the root first, then a disk with the files, which is gone with the guest.
func TestNodeHasItsFilesOnADisk(t *testing.T) {
	if _, err := exec.LookPath("mke2fs"); err != nil {
		t.Skip("mke2fs is missing (e2fsprogs)")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	copied := filepath.Join(t.TempDir(), "copy.ext4")
	g := mustFake(t, `for a; do case "$a" in *files.ext4) cp "${a##*file=}" `+copied+
		`;; esac; done; echo "$@" | grep -q snapshot=on,file=/root.ext4 && `+goodFrames)
	from := t.TempDir()
	if err := os.MkdirAll(filepath.Join(from, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a line of a file that the node reads\n", 1000)
	if err := os.WriteFile(filepath.Join(from, "in", "file"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	g.Node, g.Files = &Node{Disk: "/root.ext4"}, []File{{"/lab/folder", from}}
	if _, err := Run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	disk, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(disk, []byte(text[:4000])) || !bytes.Contains(disk, []byte("plan.json")) {
		t.Error("the disk lacks a file or the plan")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	g.Files = []File{{"/etc/passwd", "/dev/null"}}
	_, err = Run(t.Context(), g)
	if err == nil || !strings.Contains(err.Error(), "/etc/passwd: the files of a guest with a disk are below /lab") {
		t.Errorf("a file beside the disk: %v", err)
	}
}
