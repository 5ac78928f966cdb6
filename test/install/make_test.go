package install

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// root is the folder of the Makefile.
const root = "../.."

// makes runs make in the tree; it builds into dir and not into the tree.
func makes(t *testing.T, dir string, args ...string) string {
	t.Helper()
	require.Inputs(t, root, require.Sources...)
	require.Inputs(t, root, "Makefile", "packaging", "LICENSE", "README.md", "CHANGELOG.md")
	cmd := exec.CommandContext(t.Context(), "make",
		append(args, "BIN="+filepath.Join(dir, "bin"), "STAGE="+filepath.Join(dir, "stage"),
			"MAN="+filepath.Join(dir, "man"), "VERSION=v1.2.3")...)
	cmd.Dir = root
	// make of `make test` tells its own targets and flags to every make below it.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") })
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// filesIn lists the files below dir.
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func TestInstall(t *testing.T) {
	dir := t.TempDir()
	host := filepath.Join(dir, "host")
	makes(t, dir, "install", "DESTDIR="+host, "PREFIX=/opt/it", "SYSCONFDIR=/opt/etc")
	for name, says := range map[string]string{
		"/opt/it/bin/unthrottle": "", "/opt/etc/unthrottle.yaml": "version: 1\n", "/opt/it/share/doc/unthrottle/LICENSE": "Apache",
		"/opt/it/lib/systemd/system/unthrottle.service": "ExecStart=/opt/it/bin/unthrottle agent --config " +
			"/opt/etc/unthrottle.yaml\n",
		"/opt/it/share/bash-completion/completions/unthrottle":    "__start_unthrottle",
		"/opt/it/share/zsh/site-functions/_unthrottle":            "#compdef unthrottle",
		"/opt/it/share/fish/vendor_completions.d/unthrottle.fish": "complete -c unthrottle",
		"/opt/it/share/man/man1/unthrottle.1.gz":                  "\x1f\x8b",
		"/opt/it/share/man/man1/unthrottle-bench-service.1.gz":    "\x1f\x8b",
	} {
		text, err := os.ReadFile(host + name)
		if err != nil || !strings.Contains(string(text), says) {
			t.Errorf("%s: %v; want %q in it", name, err, says)
		}
	}
	static(t, host+"/opt/it/bin/unthrottle")

	// A configuration that is there is not overwritten, nor removed.
	config := host + "/opt/etc/unthrottle.yaml"
	if err := os.WriteFile(config, []byte("version: 1\nmode: apply\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := makes(t, dir, "install-files", "DESTDIR="+host, "PREFIX=/opt/it",
		"SYSCONFDIR=/opt/etc"); !strings.Contains(said, "stays as it is") {
		t.Errorf("the second install says %q", said)
	}
	// install-fleet takes a minute to build; packages_test.go looks into what it builds.
	if err := os.WriteFile(host+"/opt/it/bin/unthrottle-fleet", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := makes(t, dir, "uninstall", "DESTDIR="+host, "PREFIX=/opt/it",
		"SYSCONFDIR=/opt/etc"); !strings.Contains(said, "was changed and stays") {
		t.Errorf("uninstall says %q", said)
	}
	if left := filesIn(t, host); !slices.Equal(left, []string{"/opt/etc/unthrottle.yaml"}) {
		t.Errorf("left: %q", left)
	}
	// One that was not changed goes.
	other := filepath.Join(dir, "other")
	makes(t, dir, "install-files", "DESTDIR="+other)
	makes(t, dir, "uninstall", "DESTDIR="+other)
	if left := filesIn(t, other); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// static holds that a program needs no loader and no library of the host.
func static(t *testing.T, name string) {
	t.Helper()
	f, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) > 0 {
		t.Errorf("it needs %q, %v", libraries, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it needs a loader")
		}
	}
	if f.Section(".symtab") != nil {
		t.Error("it is not stripped")
	}
}
