package slow

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

//go:embed preload/clock.c
var source []byte

// Library compiles the preloaded library into a folder, once for each version of its source. It needs a C compiler.
func Library(ctx context.Context, dir string) (string, error) {
	name := filepath.Join(dir, fmt.Sprintf("slow-%.12x.so", sha256.Sum256(source)))
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		if compiler, err = exec.LookPath("gcc"); err != nil {
			return "", errors.New("--slow: a C compiler is missing: apt-get install gcc libc6-dev")
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(dir, "slow-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	code, made := filepath.Join(work, "clock.c"), filepath.Join(work, "clock.so")
	if err := os.WriteFile(code, source, 0o644); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, compiler, "-O2", "-Wall", "-shared", "-fPIC", "-pthread", "-o", made, code).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("--slow: compile the clock: %w: %.500s", err, out)
	}
	return name, os.Rename(made, name)
}

// SteadyArguments are QEMU's for a steady guest: its threads have names.
func SteadyArguments() []string { return []string{"-name", "guest,debug-threads=on"} }

// Apply makes a command of QEMU's run in slow time. A steady guest's CPU is as fast while the others are idle as while all are busy:
// the thread of an idle one has a companion that works in its place, so that all share the host's CPUs alike. Without it, eight CPUs
// on two are each a quarter as fast as one of them alone, and work that is given as requests to a program, not as CPU time, gains
// nothing from being spread over them.
func (k Factor) Apply(cmd *exec.Cmd, library string, steady bool) {
	if k <= 1 && !steady {
		return
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "LD_PRELOAD="+library, "UNTHROTTLE_SLOW="+strconv.Itoa(int(k)))
	if steady {
		cmd.Env = append(cmd.Env, "UNTHROTTLE_STEADY=1")
	}
}
