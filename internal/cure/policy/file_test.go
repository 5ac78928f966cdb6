package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The folder of the test lies below a sticky one that everybody can write, which is fine.
func TestNoCommandFromAFileOthersCanWrite(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(config, []byte("version: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(config, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, why, err := ReadRules(t.Context(), config); err != nil || !strings.Contains(why, "written by every user") {
		t.Errorf("why %q, error %v", why, err)
	}
	link := filepath.Join(dir, "link.yaml")
	if err := os.Chmod(config, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(config, link); err != nil {
		t.Fatal(err)
	}
	if _, why, err := ReadRules(t.Context(), link); err != nil || !strings.Contains(why, "symbolic link") {
		t.Errorf("why %q, error %v", why, err)
	}
	if os.Geteuid() == 0 {
		if _, why, err := ReadRules(t.Context(), config); err != nil || why != "" {
			t.Errorf("root's own file: why %q, error %v", why, err)
		}
	}
}
