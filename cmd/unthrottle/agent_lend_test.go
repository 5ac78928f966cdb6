package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/wait"
)

// With real work: a rule makes a calm container secondary, it is lent the CPU of
// an owner that lends, and a trial finds out what that costs the owner. One at
// rest loses nothing, and the lend stays.
func TestAgentLendsWhatCostsNothing(t *testing.T) {
	require.TestAll(t, "it waits for a trial; internal/agent lends on the modelled kernel, and TestOwnerIsUnharmed on this one")
	require.Alone(t, "what the owner uses with the lend and without")
	l := newLending(t)
	l.tr.Work(l.owner, 0)
	settings := l.lend()
	l.tr.Work(l.batch, 2)
	b := l.agent()
	if got := l.outcome(b); got != "harmless" {
		t.Errorf("the trial was %s", got)
	}
	l.settled(b, "lent", "while they idle, to", true)
	l.putBack(settings)
}

// A secondary that does not give way, because it runs in a heavy cgroup in which
// others are at work, takes most of the owner's CPU; the agent revokes it. These
// others rest: a group's weight goes to the CPUs where it has load (calc_group_shares),
// and theirs would draw it away from the owner's.
func TestAgentTakesBackWhatHarmsForReal(t *testing.T) {
	require.TestAll(t, "it waits for up to four trials; internal/agent revokes on the modelled kernel, and TestOwnerIsUnharmed measures on this one")
	if runtime.NumCPU() > 4 {
		// It would find idle CPUs instead of the owner's.
		t.Logf("on %d CPUs only the lend that costs nothing is tested", runtime.NumCPU())
		return
	}
	require.Alone(t, "what the owner uses with the lend and without")
	l := newLending(t)
	l.tr.Rest(l.tr.Make("batch/other"))
	// Heavier would move the tree's own share of the host to other CPUs.
	l.tr.Weigh(l.tr.Top+"/batch", 4*cgroup.DefaultShares)
	l.tr.Work(l.owner, 1)
	settings := l.lend()
	l.tr.Work(l.batch, runtime.NumCPU())
	// The kernel's balancer counts idle threads for next to nothing, and may leave
	// them elsewhere: they choose the owner's CPU themselves, once they may. Each
	// new agent tries anew.
	for range 4 {
		b := l.agent()
		if l.outcome(b) != "harmful" {
			l.choose()
			for line := range strings.SplitSeq(l.end(b), "\n") {
				if strings.Contains(line, "lending") {
					t.Log(line)
				}
			}
			continue
		}
		l.settled(b, "harmful", "revoked", false)
		l.putBack(settings)
		return
	}
	t.Errorf("four trials found no harm")
}

// lending is a subtree with an owner and a container for the second tier.
type lending struct {
	t            *testing.T
	tr           *cgrouptest.Tree
	owner, batch string
}

func newLending(t *testing.T) *lending {
	require.CPUs(t, 2)
	l := &lending{t: t, tr: cgrouptest.New(t)}
	comesFirst(t)
	// Who else uses this machine must not decide what the owner gets, lent or not.
	l.tr.Weigh(l.tr.Top, 16*cgroup.DefaultShares)
	l.owner, l.batch = l.tr.Make("own/web"), l.tr.Make("batch/job")
	l.tr.Limit(l.owner, 1)
	l.tr.Limit(l.batch, 8)
	return l
}

// lend pins the owner, and returns the settings from before.
func (l *lending) lend() string {
	l.t.Helper()
	settings := l.tr.Settings()
	if r := unthrottle(l.t, "apply", l.owner, "--remedy", "pin", "--lends", "--scope", l.tr.Top, "--state-dir",
		l.tr.StateDir); r.code != 0 {
		l.t.Fatal(r.out, r.errors)
	}
	return settings
}

func (l *lending) agent() *background {
	l.t.Helper()
	var b *background
	l.apart(func() {
		b = start(l.t, fmt.Sprintf("mode: apply\ninterval: 200ms\nscope: %s\nrules:\n- match: {cgroup: %s}\n  class: "+
			"secondary\n- remedy: none\n", l.tr.Top, l.batch),
			"--state-dir", l.tr.StateDir, "-v")
	})
	return b
}

// apart starts programs that come before the heavy and busy tree, and that leave the
// owner's CPUs to it: the owner's use with and without the secondary is what a trial
// compares, and the agent's own use there would be part of both.
func (l *lending) apart(starts func()) {
	l.t.Helper()
	runtime.LockOSThread() // children get their parent thread's nice value and CPUs
	defer runtime.UnlockOSThread()
	var before, others unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		l.t.Fatal(err)
	}
	_, own, err := cgroup.CPUs(l.tr.Host, l.owner)
	if err != nil {
		l.t.Fatal(err)
	}
	others = before
	for _, id := range own.List() {
		others.Clear(id)
	}
	set := func(nice int, cpus *unix.CPUSet) {
		if err := errors.Join(unix.Setpriority(unix.PRIO_PROCESS, 0, nice), unix.SchedSetaffinity(0, cpus)); err != nil {
			l.t.Fatal(err)
		}
	}
	if others.Count() == 0 { // nothing is pinned
		others = before
	}
	set(-20, &others)
	defer set(0, &before)
	starts()
}

// comesFirst gives the test and its programs more CPU time than a heavy tree until the
// test ends: where the kernel groups sessions (sched_autogroup_enabled, sched(7)), a nice
// value counts within the session only, whose own is in /proc/self/autogroup.
func comesFirst(t *testing.T) {
	t.Helper()
	const file = "/proc/self/autogroup"
	text, err := os.ReadFile(file)
	_, before, ok := strings.Cut(strings.TrimSpace(string(text)), " nice ")
	if err != nil || !ok {
		return // this kernel has no such groups: apart's nice value counts
	}
	set := func(nice string) {
		if err := os.WriteFile(file, []byte(nice), 0o644); err != nil {
			t.Logf("%s: %v", file, err)
		}
	}
	set("-20")
	t.Cleanup(func() { set(before) })
}

// outcome waits for the end of the first trial.
func (l *lending) outcome(b *background) string {
	l.t.Helper()
	found := ""
	wait.Until(l.t, "a trial ends", func() bool {
		page := b.get("/metrics")
		for _, outcome := range []string{"harmless", "harmful"} {
			if got := metric(page, fmt.Sprintf(`unthrottle_lending_trials_total{outcome=%q}`, outcome)); got != "" && got != "0" {
				found = outcome
			}
		}
		return found != ""
	})
	return found
}

// settled checks what the agent exports, what status says, and who may use what.
func (l *lending) settled(b *background, state, says string, lent bool) {
	l.t.Helper()
	wait.Until(l.t, "the lender is "+state, func() bool {
		return metric(b.get("/metrics"), fmt.Sprintf(`unthrottle_lenders{state=%q}`, state)) == "1"
	})
	_, own, err := cgroup.CPUs(l.tr.Host, l.owner)
	if err != nil {
		l.t.Fatal(err)
	}
	_, may, err := cgroup.CPUs(l.tr.Host, l.batch)
	if err != nil || own.IsSubsetOf(may) != lent {
		l.t.Errorf("the owner has %s, the secondary %s, %v", own, may, err)
	}
	var said string
	l.apart(func() { said = unthrottle(l.t, "status", "--state-dir", l.tr.StateDir).out })
	if !strings.Contains(said, "lends: ") || !strings.Contains(said, says) {
		l.t.Errorf("status, without %q:\n%s", says, said)
	}
	l.end(b)
}

// choose makes the secondary's threads choose the owner's CPUs.
func (l *lending) choose() {
	l.t.Helper()
	_, own, err := cgroup.CPUs(l.tr.Host, l.owner)
	if err != nil {
		l.t.Fatal(err)
	}
	wait.Until(l.t, "they are lent again", func() bool {
		_, may, err := cgroup.CPUs(l.tr.Host, l.batch)
		return err == nil && own.IsSubsetOf(may)
	})
	tids, err := l.tr.Host.Threads(cgroup.CPU, l.batch)
	if err != nil {
		l.t.Fatal(err)
	}
	var mask unix.CPUSet
	for _, id := range own.List() {
		mask.Set(id)
	}
	for _, tid := range tids {
		if err := unix.SchedSetaffinity(tid, &mask); err != nil && !errors.Is(err, unix.ESRCH) {
			l.t.Errorf("thread %d: %v", tid, err)
		}
	}
}

// end kills the agent, and returns what it said.
func (l *lending) end(b *background) string {
	_ = b.cmd.Process.Kill()
	said := <-b.said
	_ = b.cmd.Wait()
	return said
}

// putBack restores everything, and compares with before.
func (l *lending) putBack(settings string) {
	l.t.Helper()
	l.apart(func() { putBack(l.t, l.tr) })
	if got := l.tr.Settings(); got != settings {
		l.t.Errorf("not as before:\n%s\nwas\n%s", got, settings)
	}
}
