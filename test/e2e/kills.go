package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"time"
)

// beside is a pod with a limit that no one asks to change.
var beside = otherPod{name: "other", requests: "{cpu: 20m, memory: 16Mi}", limits: "{cpu: 100m, memory: 16Mi}"}

// soonAgain has the kubelet start containers again soon, however often they are killed.
const soonAgain = `crashLoopBackOff: {maxContainerRestartPeriod: 2s}
featureGates: {KubeletCrashLoopBackOffMax: true}
`

// victims are what is killed while something is being changed, each by its way.
func (s *suite) victims(k *cluster) map[string]func() error {
	unit := func(name string) func() error {
		return func() error { return s.systemctl("kill", "--kill-whom=main", "-s", "KILL", name) }
	}
	process := func(find func() (int, error)) func() error {
		return func() error {
			return eventually(func() error { // the one before may just have been killed
				pid, err := find()
				if err != nil {
					return err
				}
				return syscall.Kill(pid, syscall.SIGKILL)
			})
		}
	}
	return map[string]func() error{
		"kubelet": unit("kubelet"), "containerd": unit(k.containerd.folder + "-containerd"), "kube-apiserver": unit("kube-apiserver"),
		"agent":    process(func() (int, error) { return s.agentProcess(k) }),
		"policies": process(func() (int, error) { return s.chartProcess(k, "policies") }),
	}
}

// killed kills parts of the node at random moments while a burst is applied, taken back and the pod is resized. What is then in
// force is what the journal says, and another pod's limit never changes.
func (s *suite) killed(k *cluster, p *cart, o chartOptions, rounds int, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	other, err := s.startOther(k, beside)
	err = errors.Join(err, s.startKubelet(k, soonAgain))
	if err == nil {
		_, err = s.upgradeChart(k, o, "--set", "policies.enabled=true")
	}
	title := fmt.Sprintf("kills (seed %d): ", seed)
	if s.check(title+"a pod beside, and the chart with policies", errors.Join(err, s.rolledOut(k))) != nil {
		return
	}
	untouched, victims := newSettings(other).read(), s.victims(k)
	names := []string{"agent", "containerd", "kube-apiserver", "kubelet", "policies"}
	limit := p.kernel.quota()
	for round := range rounds {
		work := []string{"apply", "restore", "resize"}[random.IntN(3)]
		if work == "resize" {
			limit = map[string]string{"20000": "40000", "40000": "20000"}[limit]
		}
		done := make(chan error, 1)
		go func() { done <- s.changeCart(k, p, work, limit) }()
		time.Sleep(time.Duration(random.Int64N(int64(6 * time.Second))))
		victim := names[random.IntN(len(names))]
		err := victims[victim]()
		<-done // what was killed may fail
		if err == nil {
			err = s.backAgain(k)
		}
		if err == nil && work == "resize" { // it may not have been asked for
			err = s.changeCart(k, p, work, limit)
		}
		if err == nil {
			err = eventually(func() error { return s.asJournal(k, p, limit) })
		}
		s.check(fmt.Sprintf("%s%2d: SIGKILL of %s during %s", title, round+1, victim, work),
			errors.Join(err, equal("the other pod's settings", newSettings(other).read(), untouched),
				eventually(func() error { return s.sameContainer(k, p) })))
	}
	s.check(title+"nothing is left in the end", errors.Join(s.changeCart(k, p, "restore", ""), s.changeCart(k, p, "resize", "40000"),
		equal("settings", p.kernel.read(), resizedTo(p.before)), equal("the pod's settings", p.pod.read(), resizedTo(p.podBefore))))
	_, err = s.kubectl(k, "delete", "pod", "-n", "shop", "other", s.timeout())
	s.check(title+"the pod beside is deleted", err)
}

// changeCart does one of three things to the pod, and waits until it is done.
func (s *suite) changeCart(k *cluster, p *cart, work, quota string) error {
	var err error
	switch work {
	case "apply":
		_, err = s.show(k, p, "apply", cartName, "--remedy", "burst", "--burst", "10ms")
	case "restore":
		_, err = s.show(k, p, "restore")
	case "resize":
		cpu := strings.TrimSuffix(quota, "00") + "m"
		err = s.resizeCart(k, cpu)
		if err == nil {
			err = eventually(func() error {
				return errors.Join(equal("quota", p.kernel.quota(), quota), equal("the pod's quota", p.pod.quota(), quota))
			})
		}
	}
	return err
}

// backAgain waits until all that can be killed runs again.
func (s *suite) backAgain(k *cluster) error {
	if err := eventually(func() error { _, err := s.ctr(k.containerd, "version"); return err }); err != nil {
		return err
	}
	err := eventually(func() error { return s.nodeReady(k, k.node) })
	if err == nil {
		err = eventually(func() error { _, err := s.agentPage(k, "/readyz"); return err })
	}
	if err == nil {
		_, err = s.kubectl(k, "wait", "-n", "unthrottle", "--for=condition=Ready", "pod", "-l",
			"app.kubernetes.io/name=unthrottle", s.timeout())
	}
	return err
}

// asJournal compares the pod's settings with what the agent says is in force. An agent that only observes leaves what a container
// had that is gone, and says so.
func (s *suite) asJournal(k *cluster, p *cart, quota string) error {
	var status struct {
		InForce []struct{ ID, Target string } `json:"in_force"`
		Drift   []struct {
			ID   string
			Gone bool
		}
	}
	if err := s.inAgent(k, &status, "status"); err != nil {
		return err
	}
	gone := map[string]bool{}
	for _, d := range status.Drift {
		gone[d.ID] = gone[d.ID] || d.Gone
	}
	burst := "0"
	for _, f := range status.InForce {
		if !gone[f.ID] {
			burst = "10000"
		}
	}
	return errors.Join(equal("burst", p.kernel.burst(), burst), equal("the pod's burst", p.pod.burst(), burst),
		equal("quota", p.kernel.quota(), quota))
}

// The reset of the node: what the checks know is in a file, since the machine forgets all that is not on its disk.
const resetFile = "/var/lib/e2e/reset"

// reset ends the machine as a lost power supply does, while a burst is in force. It returns only an error.
func (s *suite) reset(k *cluster, p *cart) {
	err := errors.Join(s.startKubelet(k, ""), s.changeCart(k, p, "apply", ""))
	if s.check("reset: a burst is in force", errors.Join(err, equal("burst", p.kernel.burst(), "10000"))) != nil {
		return
	}
	err = os.WriteFile(resetFile, fmt.Appendf(nil, "%d %d %s", s.passed, s.failed, p.id), 0o600)
	syscall.Sync()
	if err == nil {
		err = os.WriteFile("/proc/sysrq-trigger", []byte("b"), 0o200)
	}
	time.Sleep(time.Minute)
	s.check("reset: the machine starts anew", errors.Join(err, errors.New("it did not")))
}

// afterReset is what runs instead of all else in a machine that was reset: false in another one.
func (s *suite) afterReset(where programs, o chartOptions) bool {
	var before string
	text, err := os.ReadFile(resetFile)
	if err != nil {
		return false
	}
	if _, err := fmt.Sscan(string(text), &s.passed, &s.failed, &before); err != nil {
		s.check("reset: what was known before", err)
		return true
	}
	k := s.wholeCluster(where)
	err = eventually(func() error { _, err := s.kubectl(k, "get", "--raw", "/readyz"); return err })
	p := &cart{said: map[string]string{}}
	if err == nil {
		err = errors.Join(s.backAgain(k), eventually(func() error {
			if bad := s.lookAtCart(k, p); bad != nil {
				return bad
			}
			if p.id == before {
				return errors.New("the pod has its old container")
			}
			return nil
		}))
	}
	s.check("reset: the node is ready again, the pod has a new container", err)
	s.check("reset: nothing is in force, and the pod has what Kubernetes gives it",
		errors.Join(eventually(func() error { return s.asJournal(k, p, "40000") }),
			equal("burst", p.kernel.burst(), "0")))
	_, err = s.show(k, p, "restore")
	s.check("reset: restore has nothing to do", errors.Join(err, equal("burst", p.kernel.burst(), "0")))
	s.uninstalledAfterReset(k, o)
	return true
}

// uninstall removes the release, and waits until no agent is left.
func (s *suite) uninstall(k *cluster, o chartOptions) error {
	_, err := s.helm(o, k.config, "uninstall", "unthrottle", "-n", "unthrottle")
	_, failed := s.kubectl(k, "wait", "-n", "unthrottle", "--for=delete", "pod", "-l", "app.kubernetes.io/name=unthrottle", s.timeout())
	return errors.Join(err, failed)
}

// uninstalledAfterReset removes the release of a machine that was reset.
func (s *suite) uninstalledAfterReset(k *cluster, o chartOptions) {
	s.check("reset: helm uninstalls the chart", s.uninstall(k, o))
}
