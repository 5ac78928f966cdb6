package docs

import (
	"bytes"
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
	// reportEvery is the time between two lines of the tutorial's program, as the page has it, and sooner where its output
	// is only compared.
	reportEvery, reportSooner = "time.sleep(6.2)", "time.sleep(1.24)"
	// wide has room for the scope, which pages do not show.
	wide = "200"
)

// The tutorial, step by step, with the program that its page shows.
func TestTutorial(t *testing.T) {
	require.TestAll(t, "it tries remedies for two minutes, as TestCart does for the README")
	require.Alone(t, "latencies with each remedy")
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
	s.tail(log, "as it was")
	s.run("sudo unthrottle ls", call{columns: wide}, "--below", s.tree.Top)
	s.run("sudo unthrottle explain /webshop --for 5s", call{dataOnly: true}, shorter("--for", "2s")...)
	// As in TestCart: the host may have disturbed a recording.
	for range 3 {
		s.run(fixShop, call{answer: "y"}, append(shorter("--for", "12s"), state...)...) // it would record for so long after 5 s
		if slices.ContainsFunc(s.made[fixShop].lines, func(line string) bool { return strings.HasPrefix(line, "in force as ") }) {
			break
		}
	}
	s.tail(log, "with the burst")
	s.run("sudo unthrottle status", call{columns: wide}, state...)
	s.run("sudo unthrottle restore", call{columns: wide}, state...)
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
	if !*update {
		if !strings.Contains(program, reportEvery) {
			s.t.Fatalf("the program of %s has no %q", tutorialPage, reportEvery)
		}
		program = strings.Replace(program, reportEvery, reportSooner, 1)
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

// tail waits for three more lines of the program, of which the first may be of the time before, and takes the last two.
func (s *stage) tail(log, when string) {
	s.t.Helper()
	for seen, end := -1, time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		text, err := os.ReadFile(log)
		if err != nil {
			s.t.Fatal(err)
		}
		if seen < 0 {
			seen = bytes.Count(text, []byte("\n"))
		}
		if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); bytes.Count(text, []byte("\n")) >= seen+3 {
			s.made["tail -n 2 shop.log   # "+when] = printed{lines: lines[len(lines)-2:]}
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("the program of %s does not go on:\n%s", tutorialPage, text)
		}
	}
}
