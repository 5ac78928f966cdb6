package docs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// built is the program, once per test run.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "unthrottle-docs-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	program := filepath.Join(dir, "unthrottle")
	build := exec.Command("go", "build", "-o", program, "./cmd/unthrottle")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	// One shows the program to a user who is not root.
	return program, os.Chmod(dir, 0o755)
})

// builtIn is the folder of the program; "": it was not built.
var builtIn string

// program builds the program and returns its path.
func program(t *testing.T) string {
	t.Helper()
	require.Inputs(t, root, require.Sources...)
	path, err := built()
	if err != nil {
		t.Fatalf("go build ./cmd/unthrottle: %v", err)
	}
	return path
}

// call is one run of the program.
type call struct {
	dir  string // working folder; "": the module's top
	args []string
	// answer is typed at each question; with it, the program has a terminal.
	answer string
	// until ends the program by an interrupt when it has printed that.
	until string
	// unprivileged: not as root.
	unprivileged bool
	// columns is the width of its output; "": 80.
	columns string
	// dataOnly: without standard error, where a terminal shows progress and wipes it.
	dataOnly bool
}

// output runs the program and returns the lines that a user would see.
func (c call) output(t *testing.T) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // patience, no claim
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t), c.args...)
	if cmd.Dir = c.dir; c.dir == "" {
		cmd.Dir = root
	}
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "TZ=UTC", "TERM=xterm", "LC_ALL=C.UTF-8", "COLUMNS="+cmp.Or(c.columns, "80"))
	if c.unprivileged {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	var seen string
	var err error
	if c.answer == "" {
		seen, err = c.piped(cmd)
	} else {
		seen, err = c.typed(cmd)
	}
	// Stopped above a bound is a result too.
	if exit := new(exec.ExitError); c.until == "" && err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("unthrottle %s: %v\n%s", strings.Join(c.args, " "), err, seen)
	}
	if c.until != "" && !strings.Contains(seen, c.until) || ctx.Err() != nil {
		t.Fatalf("unthrottle %s: it did not end by itself, or did not print %q: %v\n%s", strings.Join(c.args, " "), c.until, err, seen)
	}
	lines := strings.Split(strings.TrimRight(seen, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return lines
}

// piped runs cmd with standard output and error in one pipe.
func (c call) piped(cmd *exec.Cmd) (string, error) {
	var seen watched
	seen.until, seen.found = c.until, func() { _ = cmd.Process.Signal(os.Interrupt) }
	cmd.Stdout, cmd.Stderr = &seen, &seen
	if c.dataOnly {
		cmd.Stderr = nil
	}
	err := cmd.Run()
	return seen.text.String(), err
}

// watched is an output; it calls found once when it contains until. The buffer is not
// embedded: io.Copy would call its ReadFrom, and never Write.
type watched struct {
	text  bytes.Buffer
	until string
	found func()
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.text.Write(p)
	if w.until != "" && strings.Contains(w.text.String(), w.until) {
		w.until = ""
		w.found()
	}
	return n, err
}

// question ends a line that asks for an answer.
const question = "[y/N] "

// typed runs cmd at a terminal of its own (pts(4)) and types the answer whenever it asks.
func (c call) typed(cmd *exec.Cmd) (string, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return "", err
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		return "", err
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 400}); err != nil {
		return "", err
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	slave.Close()
	if err != nil {
		return "", err
	}
	var seen strings.Builder
	part, answered := make([]byte, 4096), 0
	for {
		n, err := master.Read(part) // EIO when the program is gone
		seen.Write(part[:n])
		if strings.Count(seen.String(), question) > answered {
			answered++
			_, _ = master.WriteString(c.answer + "\n") // a program that is gone needs none
		}
		if err != nil {
			break
		}
	}
	return strings.ReplaceAll(seen.String(), "\r", ""), cmd.Wait()
}

// words splits a shown command into the arguments of the program.
func words(command string) []string {
	command, _, _ = strings.Cut(command, "   #")
	args := strings.Fields(command)
	if args[0] == "sudo" {
		args = args[1:]
	}
	return args[1:]
}

// release is what a distribution, or who built the kernel, appended to its release.
var release = regexp.MustCompile(`\b(\d+\.\d+\.\d+)-[\w.+-]+`)

// stranger names a cgroup that another experiment has made on this host meanwhile.
var stranger = regexp.MustCompile(`/unthrottle-[a-z]+-[0-9a-f]+\.`)

// port is that of a test's agent; a page shows the default.
var port = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// stateDir is the flag of a test's own state directory in a command that the program names.
var stateDir = regexp.MustCompile(` --state-dir /\S+`)

// printed is what the program printed below a scope; "": below none.
type printed struct {
	lines []string
	scope string
}

// nameColumns is where explain cuts the name of its target.
const nameColumns = 40

// unscoped takes the scope of a test out of what was printed, as if its cgroups were
// directly below the root. Columns that it made wider become narrower. width is that
// of filled paragraphs.
func (p printed) unscoped(width int) []paragraph {
	paragraphs := unfold(p.lines, width)
	gap := strings.Repeat(" ", len(p.scope))
	short := text.Cut(p.scope+"/cart", nameColumns, "…")
	table := slices.ContainsFunc(p.lines, func(line string) bool { return strings.HasPrefix(line, p.scope) })
	for i, line := range paragraphs {
		line.text = release.ReplaceAllString(line.text, "$1")
		line.text = port.ReplaceAllString(line.text, "127.0.0.1:9469")
		line.text = stateDir.ReplaceAllString(line.text, "")
		switch {
		case p.scope == "":
		case strings.Contains(line.text, p.scope):
			line.text = strings.ReplaceAll(line.text, p.scope, "")
		case strings.Contains(line.text, short):
			line.text = strings.ReplaceAll(line.text, short, "/cart")
		case table:
			line.text = strings.Replace(line.text, "  "+gap, "  ", 1)
		}
		paragraphs[i] = line
	}
	return paragraphs
}

func TestUnscoped(t *testing.T) {
	const scope = "/scope-of-a-test-with-a-long-name-as-they-are"
	gap := strings.Repeat(" ", len(scope))
	p := printed{[]string{
		"NAME" + gap + "  LIMIT  BY",
		scope + "/a/b      1  " + scope + "/a",
		scope + "/c        2  self",
		"Linux 6.18.44-cloud-amd64, cgroup v1",
		"/scope-of-a-test-with-a-long-name-as-th…: 2 s",
	}, scope}
	want := []string{"NAME  LIMIT  BY", "/a/b      1  /a", "/c        2  self", "Linux 6.18.44, cgroup v1", "/cart: 2 s"}
	if got := texts(p.unscoped(0)); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
