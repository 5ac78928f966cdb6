package service

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/libs/go/budget"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// askedVariable makes this test's program a child that says, for each line of its standard input, what the library sees.
const askedVariable = "UNTHROTTLE_TEST_BUDGET"

func TestMain(m *testing.M) {
	if os.Getenv(askedVariable) == "" {
		os.Exit(m.Run())
	}
	out := json.NewEncoder(os.Stdout)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := out.Encode(budget.Process().Snapshot()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
}

// The library follows a limit that changes while the program runs, on either version of cgroups: permits, GOMAXPROCS and the figures that
// it shows.
func TestTheLibraryFollowsALimit(t *testing.T) {
	require.Root(t)
	require.EachCgroup(t, "the files that the library reads")
	host, err := cgroup.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.Open(sandbox.Options{Host: host, Prefix: "unthrottle-follow-test-"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Remove(); err != nil {
			t.Errorf("left behind: %v", err)
		}
	})
	g, err := box.Group("service")
	if err != nil {
		t.Fatal(err)
	}
	set := func(cpus float64) {
		t.Helper()
		if err := g.SetLimit(cgroup.Limit{Quota: time.Duration(cpus * float64(cgroup.DefaultPeriod)),
			Period: cgroup.DefaultPeriod}); err != nil {
			t.Fatal(err)
		}
	}
	set(0.5)
	ask := follower(t, g)
	wide := runtime.NumCPU() > 4 // else 4 CPUs are no limit
	for _, want := range []struct {
		cpus         float64
		procs, tasks int
	}{{0.5, 2, 1}, {1.5, 3, 2}, {4, 0, 4}, {0.5, 2, 1}} {
		set(want.cpus)
		if want.cpus == 4 && !wide {
			want.tasks = 0
		}
		var s budget.Snapshot
		for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if s = ask(); s.LimitCPUs != nil && *s.LimitCPUs == want.cpus && s.GOMAXPROCS == want.procs &&
				s.Classes[budget.App].Permits == want.tasks && s.Periods != nil {
				t.Logf("%g CPUs after %v", want.cpus, time.Since(begun).Round(time.Millisecond))
				break
			}
			if time.Since(begun) > time.Minute {
				t.Fatalf("a limit of %g CPUs was not followed within a minute: %+v", want.cpus, s)
			}
		}
	}
}

// follower starts the child in a cgroup. What it returns asks it.
func follower(t *testing.T, g *sandbox.Group) (ask func() budget.Snapshot) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = []string{askedVariable + "=1"}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	})
	if err := g.Attach(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(out)
	return func() (s budget.Snapshot) {
		t.Helper()
		if _, err := fmt.Fprintln(in); err != nil {
			t.Fatal(err)
		}
		if err := answers.Decode(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
}
