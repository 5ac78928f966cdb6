package docs

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

const (
	tutorialPage = "docs/tutorial.md"
	// fixShop is what the tutorial types to end the stops.
	fixShop = "sudo unthrottle fix /webshop --scope /webshop"
	// reportEvery is longer than the time between two lines of the tutorial's program.
	reportEvery = 7 * time.Second
	// wide has room for the scope, which pages do not show.
	wide = "200"
)

// The tutorial, step by step, with the program that its page shows.
func TestTutorial(t *testing.T) {
	require.BPF(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3, which the tutorial's program is written in")
	}
	s := newStage(t)
	path := s.tree.Make("webshop")
	s.tree.Weigh(s.tree.Top, cgroup.MaxShares)
	s.tree.Weigh(path, cgroup.MaxShares)
	s.tree.Limit(path, 0.6)
	log := s.start(path, python)

	state := []string{"--state-dir", s.tree.StateDir}
	time.Sleep(2 * reportEvery)
	s.tail(log, "as it was")
	s.run("sudo unthrottle ls", call{columns: wide}, "--below", s.tree.Top)
	s.run("sudo unthrottle explain /webshop --for 5s", call{dataOnly: true}, shorter("--for", "2s")...)
	// As in TestCart: the host may have disturbed a recording.
	for range 3 {
		s.run(fixShop, call{answer: "y"}, state...)
		if slices.ContainsFunc(s.made[fixShop].lines, func(line string) bool { return strings.HasPrefix(line, "in force as ") }) {
			break
		}
	}
	time.Sleep(2 * reportEvery)
	s.tail(log, "with the burst")
	s.run("sudo unthrottle status", call{columns: wide}, state...)
	s.run("sudo unthrottle restore", call{columns: wide}, state...)
	time.Sleep(2 * reportEvery)
	s.tail(log, "undone")
	hold(t, tutorial, s.made)
}

// start runs the page's program in a cgroup and returns the file of its output.
func (s *stage) start(path, python string) string {
	s.t.Helper()
	_, program, ok := strings.Cut(read(s.t, tutorialPage), fence+"python\n")
	program, _, ended := strings.Cut(program, fence)
	if !ok || !ended {
		s.t.Fatalf("%s shows no program in Python", tutorialPage)
	}
	dir := s.t.TempDir()
	name := filepath.Join(dir, "shop.py")
	if err := os.WriteFile(name, []byte(program), 0o600); err != nil {
		s.t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "shop.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	// The shell waits until it is in its cgroup.
	cmd := exec.Command("sh", "-c", `read go; exec "$0" "$1"`, python, name)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		s.tree.Limit(path, 1000)                            // under a quota even an exit takes periods
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended by itself, which hold has said then
		_ = cmd.Wait()
	})
	for _, c := range cgroup.Controllers() {
		if err := s.tree.Host.Attach(c, path, cmd.Process.Pid); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := io.WriteString(input, "\n"); err != nil {
		s.t.Fatal(err)
	}
	return log.Name()
}

// tail is the last two lines of the program's output.
func (s *stage) tail(log, when string) {
	s.t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		s.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	s.made["tail -n 2 shop.log   # "+when] = printed{lines: lines[max(0, len(lines)-2):]}
}
