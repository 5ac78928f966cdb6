package identify

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A file of options is read as the process finds it: through links, from its working folder; nothing but a plain, small file is opened.
func TestOptions(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("plain", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("large", make([]byte, maxOptions+1), 0o600); err != nil {
		t.Fatal(err)
	}
	whole, err := filepath.Abs("plain")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("plain", "link"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"plain": "x", "./link": "x", whole: "x", "pipe": "", "large": "", "none": "", ".": "",
		"/dev/zero": ""} {
		if got, err := Options(os.Getpid(), name); string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
