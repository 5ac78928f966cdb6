package suite

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/test/lab/boot"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/results"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

const (
	guestSource = "/src"
	guestBinary = "/usr/bin/unthrottle"
	// EnvBinary tells tests where the program itself is.
	EnvBinary = "UNTHROTTLE_BIN"
	// EnvMachine is the --smp, --l3 and --numa of the guest, in that order,
	// with spaces between.
	EnvMachine = "UNTHROTTLE_LAB_MACHINE"
)

// parallel lets the tests of a package run one after the other, also those that may run
// beside others: all of the guest's CPUs share what the host has.
const parallel = "-test.parallel=1"

// Options say how to run the tests.
type Options struct {
	Run          string        // -test.run; "" is each package's Tests
	PackageLimit time.Duration // of each package
	Must         string        // UNTHROTTLE_MUST in the guest
	Machine      string        // EnvMachine in the guest
	Env          []string
}

// Built is what was compiled.
type Built struct {
	Packages []Package       // those with tests, one for each step
	Files    []boot.File     // for the guest
	Steps    []wire.Step     // for the guest
	Failed   []results.Event // of packages that do not compile
}

// Build compiles the packages' tests, and the program, into dir. What does not
// compile is in Failed and the rest goes on: one broken package should not hide
// the others' failures.
func Build(ctx context.Context, packages []Package, moduleDir, dir string, o Options) (Built, error) {
	var b Built
	try := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = moduleDir
		_, err := runGo(cmd)
		return err
	}
	goCommand := func(importPath string, args ...string) bool {
		err := try(args...)
		if err != nil {
			b.Failed = append(b.Failed,
				results.Event{Action: "build-output", ImportPath: importPath, Output: err.Error()},
				results.Event{Action: "fail", Package: importPath, FailedBuild: importPath})
		}
		return err == nil
	}
	env := append([]string{require.EnvMust + "=" + o.Must, EnvMachine + "=" + o.Machine}, o.Env...)
	if _, err := os.Stat(filepath.Join(moduleDir, "cmd/unthrottle")); err == nil {
		to := filepath.Join(dir, "unthrottle")
		if goCommand("./cmd/unthrottle", "build", "-ldflags=-s -w", "-o", to, "./cmd/unthrottle") {
			b.Files = append(b.Files, boot.File{In: guestBinary, From: to})
			env = append(env, EnvBinary+"="+guestBinary)
		}
	}
	compile := []string{"test", "-c", "-ldflags=-s -w", "-o"}
	binaries, together := binariesOf(packages, dir)
	// One command for all loads the module once and links on all CPUs. Below, what it left out says why.
	_ = try(append(append(compile, filepath.Join(dir, togetherDir)+"/"), together...)...)
	for i, p := range packages {
		binary := binaries[i]
		if _, err := os.Stat(binary); err != nil && !goCommand(p.ImportPath, append(compile, binary, p.ImportPath)...) {
			continue
		}
		if _, err := os.Stat(binary); err != nil {
			continue // build constraints left no test
		}
		step := p.step(o, env)
		b.Files = append(b.Files, boot.File{In: step.Argv[0], From: binary})
		b.Steps = append(b.Steps, step)
		b.Packages = append(b.Packages, p)
	}
	// Those of the whole tree, as packages read one another's.
	testdata, err := fixtures(moduleDir)
	for _, rel := range testdata {
		b.Files = append(b.Files, boot.File{In: path.Join(guestSource, rel), From: filepath.Join(moduleDir, rel)})
	}
	return b, errors.Join(err, ctx.Err())
}

// togetherDir gets the binaries of the packages that one go command builds.
const togetherDir = "together"

// binariesOf returns where each package's test binary is built, and which packages one go command can build: it names
// binaries after the last element of the import path, so that of packages with one name it builds the first.
func binariesOf(packages []Package, dir string) (binaries, together []string) {
	taken := map[string]bool{}
	for i, p := range packages {
		name := path.Base(p.ImportPath) + ".test"
		if taken[name] {
			binaries = append(binaries, filepath.Join(dir, strconv.Itoa(i)+".test"))
			continue
		}
		taken[name] = true
		binaries = append(binaries, filepath.Join(dir, togetherDir, name))
		together = append(together, p.ImportPath)
	}
	return binaries, together
}

// step runs a package's test binary in the package's folder.
func (p Package) step(o Options, env []string) wire.Step {
	dir := path.Join(guestSource, p.Rel)
	argv := []string{path.Join(dir, path.Base(p.Rel)+".test"), "-test.v=test2json", "-test.paniconexit0",
		"-test.timeout=" + o.PackageLimit.String(), parallel}
	argv = append(argv, "-test.run="+cmp.Or(o.Run, "^("+strings.Join(p.Tests, "|")+")$"))
	return wire.Step{
		Argv: argv,
		Dir:  dir,
		Env:  env,
		// The test binary's own limit comes first: it prints its goroutines.
		LimitSec: int(o.PackageLimit.Seconds()) + 15,
	}
}
