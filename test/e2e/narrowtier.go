package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// noScheduler is what scheduler says of a kernel that takes none.
const noScheduler = "none"

// wants is nil for an error that has a part.
func wants(err error, part string) error {
	if err == nil {
		return errors.New("it is not refused")
	}
	return contains(err.Error(), part)
}

// scheduler is what the kernel says of BPF schedulers: disabled, or enabled and its name.
func scheduler() string {
	state, err := os.ReadFile("/sys/kernel/sched_ext/state")
	if err != nil {
		return noScheduler
	}
	name, _ := os.ReadFile("/sys/kernel/sched_ext/root/ops")
	return strings.TrimSpace(strings.TrimSpace(string(state)) + " " + strings.TrimSpace(string(name)))
}

// narrowed has the agent of the tier narrow cap the pod by sched_ext, then ends that in each way in which it may end.
func (s *suite) narrowed(k *cluster, p *cart, o chartOptions) {
	before, podBefore := p.kernel.read(), p.pod.read()
	as := func(tier string) error {
		_, err := s.upgradeChart(k, o, "--set", "tier="+tier)
		return errors.Join(err, s.rolledOut(k))
	}
	if s.check("narrow: helm upgrades the chart to the tier narrow", as("narrow")) != nil {
		return
	}
	if scheduler() == noScheduler {
		_, err := s.show(k, p, "apply", cartName, "--remedy", "narrow", "--via", "sched_ext")
		s.check("narrow: it is refused on this kernel, with the reason", errors.Join(wants(err, "the kernel has no sched_ext"),
			equal("settings", p.kernel.read(), before), as("cure")))
		return
	}
	narrow := func() error {
		_, err := s.show(k, p, "apply", cartName, "--remedy", "narrow", "--via", "sched_ext", "--credit", "100ms")
		return errors.Join(err, contains(scheduler(), "enabled unthrottle"), equal("settings", p.kernel.read(), before))
	}
	if s.check("narrow: apply in the agent's pod loads the scheduler, the quota stays written", narrow()) != nil {
		return
	}
	var status struct {
		InForce []struct {
			Remedy string
			Narrow *struct{ Running bool }
		} `json:"in_force"`
	}
	err := s.inAgent(k, &status, "status")
	if err == nil && (len(status.InForce) != 1 || status.InForce[0].Remedy != "narrow") {
		err = fmt.Errorf("status: %+v", status.InForce)
	}
	s.check("narrow: status has it", err)

	gone, err := s.killNarrow(k)
	s.check(fmt.Sprintf("narrow: SIGKILL of the agent's container ends the scheduler (after %d ms)", gone.Milliseconds()), err)
	s.check("narrow: the kernel enforces the quota at once",
		errors.Join(equal("settings", p.kernel.read(), before), p.kernel.throttledAgain()))
	err = eventually(func() error { _, err := s.agentPage(k, "/readyz"); return err })
	if err == nil {
		_, err = s.show(k, p, "restore")
	}
	s.check("narrow: the next agent knows what was in force, and restore ends it",
		errors.Join(err, equal("scheduler", scheduler(), "disabled"),
			equal("settings", p.kernel.read(), before), equal("the pod's settings", p.pod.read(), podBefore)))

	err = narrow()
	if err == nil {
		err = as("cure")
	}
	s.check("narrow: an upgrade of the chart ends the scheduler and leaves nothing of it",
		errors.Join(err, equal("scheduler", scheduler(), "disabled"),
			equal("settings", p.kernel.read(), before), equal("the pod's settings", p.pod.read(), podBefore), s.sameContainer(k, p)))
}

// killNarrow kills the agent's main process, and returns how long the scheduler was there after that.
func (s *suite) killNarrow(k *cluster) (time.Duration, error) {
	pid, err := s.agentProcess(k)
	if err != nil {
		return 0, err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return 0, err
	}
	killed := time.Now()
	err = eventually(func() error { return equal("scheduler", scheduler(), "disabled") })
	return time.Since(killed), err
}

// throttledAgain waits until a client's load is throttled.
func (c settings) throttledAgain() error {
	first := c.throttledPeriods()
	return eventually(func() error {
		if now := c.throttledPeriods(); now <= first {
			return fmt.Errorf("no more than %d periods are throttled", first)
		}
		return nil
	})
}

// throttledPeriods is the kernel's count; 0 where there is none.
func (c settings) throttledPeriods() (n int) {
	for _, name := range []string{"/sys/fs/cgroup/cpu" + c.path + "/cpu.stat", "/sys/fs/cgroup" + c.path + "/cpu.stat"} {
		text, err := os.ReadFile(name)
		if _, after, ok := strings.Cut(string(text), "nr_throttled "); err == nil && ok {
			_, _ = fmt.Sscan(after, &n)
			return n
		}
	}
	return 0
}

// heldBurst is a burst of ours that is in force while the pod's owner resizes the pod.
type heldBurst struct {
	name string
	args []string
	// quotaUS and burstUS are what the kernel has before.
	quotaUS, burstUS string
	// to is the limit that the owner writes, toUS its quota, burstLeftUS the burst beside it.
	to, toUS, burstLeftUS string
}

// heldBursts are one above the limit that the owner writes, and ones in a longer period, which are above any quota that it writes in
// its own period: the kernel refuses each until the burst is lowered.
var heldBursts = []heldBurst{
	{"a burst in the owner's period", []string{"--burst", "40ms"}, "40000", "40000", firstLimit, "20000", "20000"},
	{"a burst in a period of 1 s, of a higher limit", []string{"--period", "1s"}, "200000", "200000", nextLimit, "40000", "0"},
	{"a burst in a period of 1 s, of a lower limit", []string{"--period", "1s"}, "400000", "400000", firstLimit, "20000", "0"},
}

// resizedUnderBurst resizes the pod while a burst of ours is in force, and has its container end while one is.
func (s *suite) resizedUnderBurst(k *cluster, p *cart) {
	for _, h := range heldBursts {
		_, err := s.show(k, p, append([]string{"apply", cartName, "--remedy", "burst"}, h.args...)...)
		if err == nil {
			err = errors.Join(equal("quota", p.kernel.quota(), h.quotaUS), equal("burst", p.kernel.burst(), h.burstUS))
		}
		if err == nil {
			err = s.resizeCart(k, h.to)
		}
		if err == nil {
			err = eventually(func() error {
				return errors.Join(equal("quota", p.kernel.quota(), h.toUS), equal("the pod's quota", p.pod.quota(), h.toUS),
					equal("burst", p.kernel.burst(), h.burstLeftUS))
			})
		}
		s.check("kubernetes: a resize under "+h.name+" reaches the kernel, without a restart", errors.Join(err, s.sameContainer(k, p)))
		_, err = s.show(k, p, "restore")
		of := func(before string) string {
			if h.to == firstLimit {
				return before
			}
			return resizedTo(before)
		}
		s.check("kubernetes: restore after that leaves the resize alone", errors.Join(err,
			equal("settings", p.kernel.read(), of(p.before)), equal("the pod's settings", p.pod.read(), of(p.podBefore))))
	}
	s.restartedUnderBurst(k, p)
	err := s.resizeCart(k, nextLimit)
	s.check("kubernetes: it is resized back",
		errors.Join(err, eventually(func() error { return equal("quota", p.kernel.quota(), "40000") })))
}

// restartedUnderBurst ends the container while a burst in a period of 1 s is in force on it and its pod: the next one has what the
// owner gives it, and restore what is left of ours.
func (s *suite) restartedUnderBurst(k *cluster, p *cart) {
	_, err := s.show(k, p, "apply", cartName, "--remedy", "burst", "--period", "1s")
	if err == nil {
		err = equal("burst", p.kernel.burst(), "200000")
	}
	if err == nil {
		err = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	was := p.id
	p.restarts++
	if err == nil {
		err = eventually(func() error {
			if err := s.lookAtCart(k, p); err != nil {
				return err
			}
			if p.id == was {
				return errors.New("the container is still the same")
			}
			return equal("quota", p.kernel.quota(), "20000")
		})
	}
	s.check("kubernetes: a container that ends under a burst in a period of 1 s starts again, with what its owner gives it", err)
	_, err = s.show(k, p, "restore")
	p.before, p.podBefore = p.kernel.read(), p.pod.read()
	s.check("kubernetes: restore takes back what the pod had", errors.Join(err, equal("burst", p.kernel.burst(), "0"),
		equal("the pod's quota", p.pod.quota(), "20000"), equal("the pod's burst", p.pod.burst(), "0")))
}
