// Package inguest runs a study's program in a guest of the lab whose clock runs slower than the host's, and says whether its time is to be
// trusted.
package inguest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/test/lab/slow"
)

// Guest is one that a program runs in.
type Guest struct {
	// Lab is the lab's program.
	Lab string
	// CPUs and Kernel are the guest's; Kernel is a name of `lab list`, or a file.
	CPUs   int
	Kernel string
	// K is how many times slower than the host's its clock runs.
	K int
	// Files are files of the host by their paths in the guest.
	Files map[string]string
}

// Run runs a command for at most so long by the guest's clock, and returns the last line that it prints. What else it says goes to standard
// error. A guest whose time is not to be trusted is an error.
func (g Guest) Run(ctx context.Context, longest time.Duration, command ...string) (last []byte, err error) {
	dir, err := os.MkdirTemp("", "unthrottle-guest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	judged := filepath.Join(dir, "slow.json")
	args := []string{"run", "--slow", fmt.Sprint(g.K), "--smp", fmt.Sprint(g.CPUs), "--kernel", g.Kernel,
		"--slow-json", judged, "--timeout", longest.String()}
	for _, in := range slices.Sorted(maps.Keys(g.Files)) {
		args = append(args, "--file", in+"="+g.Files[in])
	}
	cmd := exec.CommandContext(ctx, g.Lab, append(append(args, "--"), command...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the guest: %w", err)
	}
	var result slow.Result
	text, err := os.ReadFile(judged)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, fmt.Errorf("%s: %w", judged, err)
	}
	if !result.OK {
		return nil, fmt.Errorf("the guest's time is not to be trusted: %s: end what else runs on this host, and start again; what was "+
			"measured is kept", strings.Join(result.Off, "; "))
	}
	return lastLine(out), nil
}

// lastLine is the last line of what a command printed.
func lastLine(out []byte) (last []byte) {
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		last = bytes.Clone(in.Bytes())
	}
	return last
}
