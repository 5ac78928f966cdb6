package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// apt runs apt-get and apt-cache with its own configuration.
type apt struct {
	dir  string // private: sources, lists, state, archives
	conf string
	// repository is the address of the Debian archive.
	repository string
}

const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// newAPT reads the index of our suites from this machine's Debian archive.
func newAPT(ctx context.Context, dir string) (*apt, error) {
	for _, tool := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("the lab fetches Debian packages and needs apt and dpkg: %w; run it on Debian or "+
				"in a Debian container", err)
		}
	}
	machine, err := output(ctx, "apt-get", "indextargets", "Created-By: Packages")
	if err != nil {
		return nil, err
	}
	repo, err := debianRepository(machine)
	if err != nil {
		return nil, err
	}
	a := &apt{dir: dir, conf: filepath.Join(dir, "lab.conf"), repository: repo}
	for _, d := range []string{"lists/partial", "state", "cache", "empty"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	keyring := ""
	if _, err := os.Stat(debianKeyring); err == nil {
		keyring = " signed-by=" + debianKeyring
	}
	var sources strings.Builder
	for _, suite := range suites() {
		fmt.Fprintf(&sources, "deb [arch=amd64%s] %s %s main\n", keyring, repo, suite)
	}
	for file, text := range map[string]string{"sources.list": sources.String(), "status": "", "lab.conf": configuration(dir)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	if _, err := output(ctx, "apt-get", "-c", a.conf, "-q", "update"); err != nil {
		return nil, fmt.Errorf("read the package index: %w", err)
	}
	return a, nil
}

// configuration returns a file that apt reads after the machine's own. It keeps the machine's proxies, credentials and
// keys. It clears the hooks, which are meant for the machine's own cache.
func configuration(dir string) string {
	var b strings.Builder
	for _, kv := range [][2]string{
		{"Dir::Etc::sourcelist", filepath.Join(dir, "sources.list")},
		{"Dir::Etc::sourceparts", filepath.Join(dir, "empty")},
		{"Dir::Etc::preferences", filepath.Join(dir, "empty", "none")},
		{"Dir::Etc::preferencesparts", filepath.Join(dir, "empty")},
		{"Dir::State", filepath.Join(dir, "state")},
		{"Dir::State::lists", filepath.Join(dir, "lists")},
		{"Dir::State::status", filepath.Join(dir, "status")},
		{"Dir::Cache", filepath.Join(dir, "cache")},
		{"APT::Architecture", "amd64"},
		{"APT::Install-Recommends", "false"},
		{"APT::Sandbox::User", "root"}, // user _apt may have no access to the cache
		{"Acquire::Languages", "none"},
		{"Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false"},
		{"Acquire::Retries", "3"},
		{"Debug::NoLocking", "true"}, // the cache has its own lock
	} {
		fmt.Fprintf(&b, "%s %q;\n", kv[0], kv[1])
	}
	for _, hook := range []string{"APT::Update::Pre-Invoke", "APT::Update::Post-Invoke",
		"APT::Update::Post-Invoke-Success", "DPkg::Pre-Invoke", "DPkg::Post-Invoke"} {
		fmt.Fprintf(&b, "#clear %s;\n", hook)
	}
	return b.String()
}

// debianRepository finds the address of the Debian archive in the output of `apt-get indextargets`: paragraphs of
// "Field: value".
func debianRepository(indexTargets string) (string, error) {
	for _, paragraph := range strings.Split(indexTargets, "\n\n") {
		field := map[string]string{}
		for _, line := range strings.Split(paragraph, "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				field[name] = strings.TrimSpace(value)
			}
		}
		uri, release, origin := field["Repo-URI"], field["Release"], field["Origin"]
		if uri == "" || strings.ContainsAny(uri, " \t[]") || strings.Contains(release, "security") {
			continue
		}
		// Before the first `apt-get update` no Origin is known; then the suite's name decides.
		if origin == "Debian" || origin == "" && debianSuite(release) {
			return uri, nil
		}
	}
	return "", errors.New("this machine's package sources have no Debian archive (checked with apt-get " +
		"indextargets); the lab takes QEMU and kernels from there: add one, or run in a Debian container")
}

func debianSuite(release string) bool {
	name, _, _ := strings.Cut(release, "-")
	switch name {
	case "bookworm", "trixie", "forky", "sid", "stable", "oldstable", "testing", "unstable":
		return true
	}
	return false
}

// names lists the packages whose name begins with prefix.
func (a *apt) names(ctx context.Context, prefix string) ([]string, error) {
	out, err := output(ctx, "apt-cache", "-c", a.conf, "pkgnames", prefix)
	return strings.Fields(out), err
}

// versions lists the versions of a package in a suite.
func (a *apt) versions(ctx context.Context, name, suite string) ([]string, error) {
	out, err := output(ctx, "apt-cache", "-c", a.conf, "madison", name)
	if err != nil {
		return nil, err
	}
	return madison(out, suite), nil
}

// madison reads lines "name | version | address suite/component arch Packages".
func madison(out, suite string) []string {
	var found []string
	for _, line := range strings.Split(out, "\n") {
		fields := strings.Split(line, "|")
		if len(fields) != 3 {
			continue
		}
		if source := strings.Fields(fields[2]); len(source) >= 2 && strings.HasPrefix(source[1], suite+"/") {
			found = append(found, strings.TrimSpace(fields[1]))
		}
	}
	return found
}

// unpack downloads packages and unpacks them into root. With closure it includes all dependencies.
func (a *apt) unpack(ctx context.Context, root string, closure bool, packages ...string) error {
	archives, err := os.MkdirTemp(a.dir, "archives.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(archives)
	if err := os.Mkdir(filepath.Join(archives, "partial"), 0o755); err != nil {
		return err
	}
	if closure {
		args := []string{"-c", a.conf, "-q", "-y", "-o", "Dir::Cache::archives=" + archives, "install", "--download-only"}
		_, err = output(ctx, "apt-get", append(args, packages...)...)
	} else {
		get := exec.CommandContext(ctx, "apt-get", append([]string{"-c", a.conf, "-q", "download"}, packages...)...)
		get.Dir = archives
		_, err = outputOf(get)
	}
	if err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return err
	}
	if len(debs) < len(packages) {
		return fmt.Errorf("apt downloaded %d packages for %s", len(debs), strings.Join(packages, ", "))
	}
	for _, deb := range debs {
		if _, err := output(ctx, "dpkg-deb", "-x", deb, root); err != nil {
			return err
		}
	}
	return nil
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	return outputOf(exec.CommandContext(ctx, name, args...))
}

// outputOf runs a command and adds the end of its standard error to the error.
func outputOf(cmd *exec.Cmd) (string, error) {
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(errs.String())
		if len(said) > 2000 {
			said = "..." + said[len(said)-2000:]
		}
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, said)
	}
	return out.String(), nil
}
