package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestChoose(t *testing.T) {
	sameLine := func(s string) bool { return strings.HasPrefix(s, "6.18.") }
	for _, c := range []struct {
		pin        string
		candidates []string
		got, note  string
	}{
		{"6.18.15+deb13", []string{"6.18.9+deb13", "6.18.15+deb13", "6.18.20+deb13"}, "6.18.15+deb13", ""},
		{"6.18.1+deb13", []string{"6.18.9+deb13", "6.18.15+deb13", "7.0.1+deb13"}, "6.18.15+deb13",
			"6.18.1+deb13 has left trixie; took 6.18.15+deb13"},
	} {
		got, note, err := choose(c.pin, "trixie", c.candidates, sameLine)
		if err != nil || got != c.got || note != c.note {
			t.Errorf("%s: got %q %q %v, want %q %q", c.pin, got, note, err, c.got, c.note)
		}
	}
	if _, _, err := choose("6.18.1", "trixie", []string{"7.0.1"}, sameLine); err == nil ||
		!strings.Contains(err.Error(), "neither 6.18.1 nor another") {
		t.Errorf("got %v", err)
	}
}

// What is no name of a package is said before anything is fetched.
func TestPackagesHaveNames(t *testing.T) {
	for _, bad := range []string{"", "-q", "a b", "Nginx", "a"} {
		_, err := (&Cache{Dir: "/nonexistent"}).Packages(t.Context(), Line{}, Kernel{}, []string{"nodejs", bad})
		if err == nil || !strings.Contains(err.Error(), "is no name of a Debian package") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestNewer(t *testing.T) {
	ordered := []string{"6.1.0-9", "6.1.0-47", "6.1.0-50", "6.18.5+deb13", "6.18.15+deb13", "6.18.15+deb13u1", "6.18.015+deb14"}
	for i, a := range ordered {
		for j, b := range ordered {
			if newer(a, b) != (i > j) {
				t.Errorf("newer(%s, %s) = %v", a, b, newer(a, b))
			}
		}
	}
}

func TestDebianRepository(t *testing.T) {
	paragraph := func(uri, release, origin string) string {
		p := "MetaKey: main/binary-amd64/Packages\nRelease: " + release + "\nRepo-URI: " + uri + "\n"
		if origin != "" {
			p += "Origin: " + origin + "\n"
		}
		return p
	}
	for name, c := range map[string]struct{ targets, want string }{
		"after an update": {paragraph("http://sec/debian-security/", "bookworm-security", "Debian") + "\n" +
			paragraph("http://mirror/debian/", "bookworm", "Debian"), "http://mirror/debian/"},
		"before an update": {paragraph("http://other/repo/", "focal", "") + "\n" +
			paragraph("http://mirror/debian/", "trixie-updates", ""), "http://mirror/debian/"},
		"not Debian":     {paragraph("http://mirror/ubuntu/", "noble", "Ubuntu"), ""},
		"an odd address": {paragraph("http://mirror/ [trusted=yes] x", "bookworm", "Debian"), ""},
		"none":           {"", ""},
	} {
		got, err := debianRepository(c.targets)
		if got != c.want || (c.want == "") != (err != nil) {
			t.Errorf("%s: got %q %v, want %q", name, got, err, c.want)
		}
	}
}

func TestMadison(t *testing.T) {
	const out = "qemu-system-x86 | 1:11.1.3 | http://m/debian trixie-backports/main amd64 Packages\n" +
		"qemu-system-x86 | 1:10.0.13 | http://m/debian trixie/main amd64 Packages\nnonsense\n"
	if got := madison(out, "trixie"); len(got) != 1 || got[0] != "1:10.0.13" {
		t.Errorf("got %q", got)
	}
}

// TestConfigurationIsPrivate checks that apt writes or runs none of the machine's files.
func TestConfigurationIsPrivate(t *testing.T) {
	text := configuration("/cache/apt")
	for _, want := range []string{`Dir::State "/cache/apt/state"`, `Dir::State::status "/cache/apt/status"`,
		`Dir::Cache "/cache/apt/cache"`,
		`Dir::Etc::sourcelist "/cache/apt/sources.list"`, "#clear APT::Update::Post-Invoke;"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestExtractVmlinux(t *testing.T) {
	dir := t.TempDir()
	// The stand-ins for zstd and lz4 drop the mark, so that the text after it is the kernel. The first mark in the
	// image is a coincidence.
	command := func(ctx context.Context, tool string, _ ...string) *exec.Cmd {
		if tool == "lz4" {
			return exec.CommandContext(ctx, "sh", "-c", "cat >/dev/null; exit 1")
		}
		return exec.CommandContext(ctx, "sh", "-c", "tail -c +5; exit 1")
	}
	image, vmlinux := filepath.Join(dir, "vmlinuz"), filepath.Join(dir, "vmlinux")
	mark := "\x28\xb5\x2f\xfd"
	if err := os.WriteFile(image, []byte("MZ"+mark+"chance"+mark+"\x7fELFkernel"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := extractVmlinux(context.Background(), image, vmlinux, command); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(vmlinux); string(got) != "\x7fELFkernel" || err != nil {
		t.Errorf("got %q %v", got, err)
	}
	if err := os.WriteFile(image, []byte("MZ nothing"+mark+"junk"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := extractVmlinux(context.Background(), image, vmlinux, command); err == nil ||
		!strings.Contains(err.Error(), "no kernel compressed") {
		t.Errorf("got %v", err)
	}
}

// TestPartIsFetchedOnce checks that many labs that share a cache fetch a part once, and need no network afterwards.
func TestPartIsFetchedOnce(t *testing.T) {
	dir := t.TempDir()
	var fetched atomic.Int32
	fetchPart := func(_ context.Context, into string) (string, string, error) {
		fetched.Add(1)
		return "1.2", "took 1.2", os.WriteFile(filepath.Join(into, "file"), []byte("x"), 0o644)
	}
	var labs sync.WaitGroup
	for range 8 {
		labs.Go(func() {
			var m Manifest
			c := &Cache{Dir: dir, Log: io.Discard}
			if err := c.part(context.Background(), filepath.Join(dir, "part"), "1.1", &m, fetchPart); err != nil ||
				m.Version != "1.2" || m.Note != "took 1.2" {
				t.Errorf("got %+v %v", m, err)
			}
		})
	}
	labs.Wait()
	if fetched.Load() != 1 {
		t.Errorf("fetched %d times", fetched.Load())
	}
	var m Manifest
	c := &Cache{Dir: dir, Log: io.Discard}
	if err := c.part(context.Background(), filepath.Join(dir, "part"), "1.3", &m, fetchPart); err != nil || fetched.Load() != 2 {
		t.Errorf("another pin: fetched %d times, %v", fetched.Load(), err)
	}
}

func TestPartIsCompleteOrAbsent(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	c := &Cache{Dir: dir, Log: &log}
	oops := errors.New("the network went away")
	var m Manifest
	err := c.part(context.Background(), filepath.Join(dir, "part"), "1.1", &m,
		func(_ context.Context, into string) (string, string, error) {
			return "1.1", "", errors.Join(os.WriteFile(filepath.Join(into, "half"), nil, 0o644), oops)
		})
	if !errors.Is(err, oops) {
		t.Errorf("got %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "lock" {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestLines(t *testing.T) {
	if Lines()[0].Name != DefaultLine {
		t.Errorf("the first line is %s, not the default", Lines()[0].Name)
	}
	if _, err := FindLine("2.6"); err == nil || !strings.Contains(err.Error(), "6.18, 6.12, 6.1, 7.2") {
		t.Errorf("got %v", err)
	}
	l, err := FindLine("6.1")
	if err != nil || l.packageName(l.Pin) != "linux-image-6.1.0-50-cloud-amd64" {
		t.Errorf("got %+v %v", l, err)
	}
	for _, l := range Lines() {
		found := false
		for _, s := range suites() {
			found = found || s == l.Suite
		}
		if !found || !strings.HasPrefix(l.Pin, l.Name+".") {
			t.Errorf("line %+v: pin or suite does not fit", l)
		}
	}
}
