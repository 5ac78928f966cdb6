package install

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Each package holds what it should, the same program is in all of them and runs, and making them again gives the same
// bytes.
func TestPackages(t *testing.T) {
	require.TestAll(t, "it packs twice, with a packager that is fetched first; make smoke packs once")
	packager := exec.CommandContext(t.Context(), "go", "tool", "-modfile=tools/nfpm/go.mod", "nfpm", "--version")
	packager.Dir = root
	if out, err := packager.CombinedOutput(); err != nil {
		t.Skipf("the packager cannot be built here: %v\n%s", err, out)
	}
	dir := t.TempDir()
	dist := filepath.Join(dir, "dist")
	pack := func(to string) string {
		makes(t, dir, "packages", "ARCHS="+runtime.GOARCH, "DIST="+to, "SOURCE_DATE_EPOCH=1700000000")
		return makes(t, dir, "image", "ARCHS="+runtime.GOARCH, "DIST="+to, "SOURCE_DATE_EPOCH=1700000000")
	}
	sums := pack(dist)
	if again := pack(filepath.Join(dir, "again")); again != sums {
		t.Errorf("not the same bytes again:\n%s\nwere\n%s", again, sums)
	}
	readOf := func(pattern string) []byte {
		names, err := filepath.Glob(filepath.Join(dist, pattern))
		if err != nil || len(names) != 1 {
			t.Fatalf("%s: %q, %v", pattern, names, err)
		}
		return fileOf(t, names[0])
	}

	deb := members(t, readOf("unthrottle_1.2.3-1_*.deb"))
	files := untarred(t, unzipped(t, deb["/data.tar.gz"]))
	control := untarred(t, unzipped(t, deb["/control.tar.gz"]))
	program := files["/usr/bin/unthrottle"]
	installed := []string{
		"/etc/unthrottle.yaml", "/usr/bin/unthrottle", "/usr/lib/systemd/system/unthrottle.service",
		"/usr/share/bash-completion/completions/unthrottle", "/usr/share/doc/unthrottle/CHANGELOG.md", "/usr/share/doc/unthrottle/LICENSE",
		"/usr/share/doc/unthrottle/README.md", "/usr/share/doc/unthrottle/unthrottle.yaml",
		"/usr/share/fish/vendor_completions.d/unthrottle.fish",
	}
	for _, page := range filesIn(t, filepath.Join(dir, "man")) {
		installed = append(installed, "/usr/share/man/man1"+page+".gz")
	}
	holds := func(what string, got contents, more ...string) {
		t.Helper()
		want := slices.Sorted(slices.Values(append(more, installed...)))
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			t.Errorf("%s holds\n%q, want\n%q", what, names, want)
		}
	}
	holds("deb", files, "/usr/share/doc/unthrottle/copyright", "/usr/share/zsh/vendor-completions/_unthrottle")
	if got := string(control["/conffiles"]); got != "/etc/unthrottle.yaml\n" {
		t.Errorf("conffiles: %q", got)
	}
	for name, says := range map[string]string{"/control": "Version: 1.2.3-1\n", "/prerm": "unthrottle restore", "/postrm": "purge"} {
		if !strings.Contains(string(control[name]), says) {
			t.Errorf("%s does not say %q", name, says)
		}
	}
	rpm := payload(t, readOf("unthrottle-1.2.3-1.*.rpm"))
	holds("rpm", rpm, "/usr/share/zsh/site-functions/_unthrottle")
	tarball := untarred(t, unzipped(t, readOf("unthrottle-v1.2.3-linux-*.tar.gz")))
	image := imageLayer(t, readOf("unthrottle-v1.2.3-linux-*.oci.tar"))
	for what, other := range map[string][]byte{
		"rpm": rpm["/usr/bin/unthrottle"], "tarball": tarball["/unthrottle-v1.2.3-linux-"+runtime.GOARCH+"/unthrottle"],
		"image": image["/usr/bin/unthrottle"],
	} {
		if !bytes.Equal(other, program) {
			t.Errorf("%s has another program than the deb: %d bytes and %d", what, len(other), len(program))
		}
	}
	if _, ok := tarball["/unthrottle-v1.2.3-linux-"+runtime.GOARCH+"/man/man1/unthrottle-fix.1.gz"]; !ok {
		t.Error("the tarball has no manual pages")
	}
	if len(image) != 1 {
		t.Errorf("the image holds more than the program: %q", slices.Sorted(maps.Keys(image)))
	}
	fleet := untarred(t, unzipped(t, members(t, readOf("unthrottle-fleet_1.2.3-1_*.deb"))["/data.tar.gz"]))["/usr/bin/unthrottle-fleet"]
	for what, other := range map[string][]byte{
		"rpm": payload(t, readOf("unthrottle-fleet-1.2.3-1.*.rpm"))["/usr/bin/unthrottle-fleet"],
		"tarball": untarred(t, unzipped(t,
			readOf("unthrottle-fleet-v1.2.3-linux-*.tar.gz")))["/unthrottle-fleet-v1.2.3-linux-"+runtime.GOARCH+"/unthrottle-fleet"],
		"image": imageLayer(t, readOf("unthrottle-fleet-v1.2.3-linux-*.oci.tar"))["/usr/bin/unthrottle-fleet"],
	} {
		if !bytes.Equal(other, fleet) {
			t.Errorf("%s has another unthrottle-fleet than the deb: %d bytes and %d", what, len(other), len(fleet))
		}
	}

	unpacked := filepath.Join(dir, "unthrottle")
	for name, of := range map[string][]byte{unpacked: program, unpacked + "-fleet": fleet} {
		if err := os.WriteFile(name, of, 0o755); err != nil {
			t.Fatal(err)
		}
		static(t, name)
		if out, err := exec.CommandContext(t.Context(), name, "--version").Output(); err != nil ||
			!strings.Contains(string(out), "v1.2.3") {
			t.Errorf("%s --version: %q, %v", name, out, err)
		}
	}
	// One starts the other from its own folder, and DuckDB is in it.
	out, err := exec.CommandContext(t.Context(), unpacked, "fleet", "generate", "--hosts", "1", "--containers", "2",
		"--for", "1h", "--out", filepath.Join(dir, "rows")).CombinedOutput()
	if err != nil {
		t.Errorf("fleet generate: %v\n%s", err, out)
	}
	out, err = exec.CommandContext(t.Context(), unpacked, "fleet", "report", filepath.Join(dir, "rows")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "2 containers") {
		t.Errorf("fleet report: %v\n%s", err, out)
	}
	config := filepath.Join(dir, "unthrottle.yaml")
	if err := os.WriteFile(config, files["/etc/unthrottle.yaml"], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), unpacked, "agent", "--check", "--config", config, "--state-dir",
		dir).CombinedOutput(); err != nil {
		t.Errorf("the configuration in the package: %v\n%s", err, out)
	}
}
