package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
)

// envHostile makes the test's program a hostile target.
const envHostile = "UNTHROTTLE_TEST_HOSTILE"

// hostileThreads are more than a look follows, each with a name that would clear a terminal.
const hostileThreads = 1200

// hostile burns CPU between many threads, and starts processes that end at once, until its input ends.
func hostile() {
	called := func() {
		_ = os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", unix.Gettid()), []byte("\x1b[2J\"';--"), 0)
	}
	threads := make(chan struct{})
	for range hostileThreads {
		go func() {
			runtime.LockOSThread()
			called()
			threads <- struct{}{}
			select {}
		}()
	}
	for range hostileThreads {
		<-threads
	}
	go func() {
		runtime.LockOSThread()
		called()
		for rounds := 0; ; rounds++ {
		}
	}()
	go func() {
		for exec.Command("true").Run() == nil {
		}
	}()
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

// A target with more threads than a look follows, names that are commands of a terminal, and processes that come and go within
// milliseconds.
func TestHostileLook(t *testing.T) {
	tr := cgrouptest.New(t)
	own := tr.Make("own")
	tr.Limit(own, 0.2)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	target := exec.Command(exe)
	target.Env = append(os.Environ(), envHostile+"=1")
	in, err := target.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := target.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = target.Wait()
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	if err := tr.Host.Attach(cgroup.CPU, own, target.Process.Pid); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(target.Process.Pid)
	for _, format := range []string{"text", "json"} {
		r := unthrottle(t, "look", pid, "--for", "3s", "--output", format)
		if at := strings.IndexFunc(r.out+r.errors, func(c rune) bool { return unicode.IsControl(c) && c != '\n' }); at >= 0 {
			t.Errorf("a control character at %d: %q", at, r.out+r.errors)
		}
		// A slow host has few samples: they may tell nothing, and never that all is well.
		if !strings.Contains(r.out, "were not read; 1024 at once are followed") || strings.Contains(r.out, "Nothing wrong") {
			t.Errorf("%s: exit code %d:\n%s%s", format, r.code, r.out, r.errors)
		}
	}
}
