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
	out, err := exec.CommandContext(ctx, compiler, "-O2", "-Wall", "-shared", "-fPIC", "-o", made, code).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("--slow: compile the clock: %w: %.500s", err, out)
	}
	return name, os.Rename(made, name)
}

// Apply makes a command of QEMU's run in slow time.
func (k Factor) Apply(cmd *exec.Cmd, library string) {
	if k <= 1 {
		return
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "LD_PRELOAD="+library, "UNTHROTTLE_SLOW="+strconv.Itoa(int(k)))
}
