package services

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Tool runs the unthrottle program on a stage, with a journal of its own.
type Tool struct {
	// Target is the path of the container.
	Target          string
	exe, scope, dir string
}

// NewTool is a program on a stage; without a stage, what it says of recordings.
func NewTool(exe string, s *Stage) Tool {
	if s == nil {
		return Tool{exe: exe}
	}
	return Tool{Target: s.Target.At().Path, exe: exe, scope: s.Scope(), dir: s.Dir}
}

// Run runs a command and returns its standard output. When ctx ends, the program is
// interrupted and undoes what it did. On a busy host a forecast would take minutes at
// the usual priority.
func (t Tool) Run(ctx context.Context, args ...string) (out []byte, err error) {
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "-10", t.exe}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err = cmd.Output()
	if err != nil {
		err = fmt.Errorf("unthrottle %s: %w: %s", args[0], err, lastLines(words.String(), 600))
	}
	return out, err
}

// Version is the commit that the program names, "-dirty" behind it where files had changed; "": it names none.
func (t Tool) Version(ctx context.Context) (string, error) {
	out, err := t.Run(ctx, "version", "--json")
	if err != nil {
		return "", err
	}
	var v struct {
		Commit   *string `json:"commit"`
		Modified *bool   `json:"modified"`
	}
	if err := json.Unmarshal(out, &v); err != nil {
		return "", fmt.Errorf("version --json: %w", err)
	}
	if v.Commit == nil {
		return "", nil
	}
	const digits = 8
	commit := (*v.Commit)[:min(digits, len(*v.Commit))]
	if v.Modified != nil && *v.Modified {
		commit += "-dirty"
	}
	return commit, nil
}

// lastLines cuts a text from the front. Of a crash it keeps what comes first, which says where.
func lastLines(s string, most int) string {
	s = strings.TrimSpace(s)
	if i := strings.Index(s, "\npanic: "); i >= 0 {
		const trace = 4000
		return s[i+1 : min(len(s), i+trace)]
	}
	return s[max(0, len(s)-most):]
}

// Changing adds the flags of commands that write.
func (t Tool) Changing(args ...string) []string {
	return append(args, "--scope", t.scope, "--state-dir", t.State())
}

// State is the folder of the journal.
func (t Tool) State() string { return filepath.Join(t.dir, "state") }

// Apply applies a remedy, by the arguments of apply after the target; none: it applies nothing. refused is the tool's reason where it does
// not.
func (t Tool) Apply(ctx context.Context, args []string) (refused string, err error) {
	if len(args) == 0 {
		return "", nil
	}
	args = append([]string{"apply", t.Target, "--for", "500ms"}, args...)
	_, err = t.Run(ctx, t.Changing(args...)...)
	if err != nil && ctx.Err() == nil {
		return err.Error(), nil
	}
	return "", err
}

// Restore puts everything back.
func (t Tool) Restore(ctx context.Context) error {
	_, err := t.Run(ctx, t.Changing("restore")...)
	return err
}
