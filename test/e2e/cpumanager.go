package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// staticPolicy is what the kubelet's file has for exclusive CPUs: CPU 0 is the system's, alone, and what is given out is spread over
// cores.
const staticPolicy = `cpuManagerPolicy: static
reservedSystemCPUs: "0"
cpuManagerPolicyOptions: {strict-cpu-reservation: "true", distribute-cpus-across-cores: "true"}
featureGates: {CPUManagerPolicyAlphaOptions: true}
`

// exclusive gets a CPU of its own, which the kubelet gives it without a quota (DisableCPUQuotaWithExclusiveCPUs). It rests: an
// emulated CPU that computes takes one of the host's, which the control plane needs.
func exclusive(name string) otherPod {
	const all = "{cpu: 1, memory: 16Mi}"
	return otherPod{name: name, requests: all, limits: all, command: "while :; do sleep 1; done"}
}

// wide has a limit with a fraction, above one CPU, as a hybrid needs it.
var wide = otherPod{name: "wide", requests: "{cpu: 50m, memory: 16Mi}", limits: "{cpu: 1500m, memory: 16Mi}"}

// level has a limit for the pod alone: the kubelet gives it to the container too.
var level = otherPod{name: "level",
	pod: []string{"resources: {requests: {cpu: 20m, memory: 16Mi}, limits: {cpu: 50m, memory: 32Mi}}"}}

// cpuManager has the kubelet give out CPUs, and tries each remedy that takes CPUs beside that.
func (s *suite) cpuManager(k *cluster, p *cart) {
	err := errors.Join(s.systemctl("stop", "kubelet"), os.Remove("/var/lib/kubelet/cpu_manager_state"), s.startKubelet(k, staticPolicy))
	if s.check("cpu manager: the kubelet runs with the static policy, strict-cpu-reservation and "+
		"distribute-cpus-across-cores", err) != nil {
		return
	}
	with, err := s.startOther(k, wide)
	if s.check("cpu manager: a pod with a limit of 1500m runs", err) != nil {
		return
	}
	store, err := s.startOther(k, exclusive("store"))
	if err == nil {
		err = errors.Join(equal("its quota", newSettings(store).quota(), "max"), eventually(func() error {
			if overlaps(cpus(store), cpus(with)) || strings.ContainsAny(cpus(store), ",-") {
				return fmt.Errorf("it has CPUs %s, the wide one %s", cpus(store), cpus(with))
			}
			return nil
		}))
	}
	if s.check("cpu manager: a Guaranteed pod has a CPU of its own and no quota", err) != nil {
		return
	}
	told, err := s.show(k, p, "check")
	s.check("cpu manager: check in the agent's pod names it", errors.Join(err, contains(told, "kubelet static policy")))
	owned := cpus(store)
	for _, try := range []struct {
		pod, cgroup string
		remedy      []string
	}{
		{"shop/wide", with, []string{"pin"}},
		{"shop/wide", with, []string{"pin", "--class", "hybrid"}},
		{cartName, p.kernel.path, []string{"narrow"}},
		{"shop/wide", with, []string{"narrow", "--via", "sched_ext"}},
	} {
		kernel, pod := newSettings(try.cgroup), newSettings(filepath.Dir(try.cgroup))
		before, podBefore := kernel.read(), pod.read()
		_, err := s.show(k, p, append([]string{"apply", try.pod, "--remedy"}, try.remedy...)...)
		how := "in force"
		if err != nil && try.pod != cartName {
			_, why, refused := strings.Cut(err.Error(), "unthrottle: ")
			if how = "failed"; refused {
				how, err = "refused: "+strings.Join(strings.Fields(why), " "), nil
			}
		}
		if overlaps(cpus(try.cgroup), owned) {
			err = errors.Join(err, fmt.Errorf("%s has CPUs %s", try.pod, cpus(try.cgroup)))
		}
		s.check(fmt.Sprintf("cpu manager: %s beside it leaves its CPU alone (%.300s)", strings.Join(try.remedy, " "), how),
			errors.Join(err, equal("the store's CPUs", cpus(store), owned)))
		if try.pod == cartName {
			s.secondExclusive(k, try.cgroup, store)
		}
		_, err = s.show(k, p, "restore")
		s.check("cpu manager: restore", errors.Join(err, eventually(func() error {
			return errors.Join(equal("settings", kernel.read(), before), equal("the pod's settings", pod.read(), podBefore),
				equal("the store's CPUs", cpus(store), owned))
		})))
	}
	_, err = s.show(k, p, "apply", "shop/store", "--remedy", "pin")
	if err == nil {
		err = errors.New("it is not refused")
	} else {
		err = contains(err.Error(), "unthrottle: ")
	}
	s.check("cpu manager: pin of the pod that has its CPU from the kubelet is refused",
		errors.Join(err, equal("the store's CPUs", cpus(store), owned)))

	ofPod, err := s.startOther(k, level)
	if err == nil {
		err = eventually(func() error {
			var all struct{ Containers []listed }
			if err := s.inAgent(k, &all, "ls", "--for", "2s"); err != nil {
				return err
			}
			for _, l := range all.Containers {
				if l.Path == ofPod {
					if l.Limit == nil || *l.Limit != 0.05 {
						return errors.New("it is listed without the pod's limit")
					}
					return equal("name", l.Name, "shop/level/app")
				}
			}
			return errors.New("it is not listed")
		})
	}
	s.check("cpu manager: a container with pod-level resources alone has the pod's limit", err)
	_, err = s.kubectl(k, "delete", "pod", "-n", "shop", "wide", "store", "level", s.timeout())
	err = errors.Join(err, s.systemctl("stop", "kubelet"), os.Remove("/var/lib/kubelet/cpu_manager_state"), s.startKubelet(k, ""))
	s.check("cpu manager: the kubelet has its defaults again", err)
}

// secondExclusive starts a pod that gets a CPU of its own while another one is narrowed to one CPU.
func (s *suite) secondExclusive(k *cluster, narrowed, store string) {
	_, err := strconv.Atoi(cpus(narrowed))
	s.check("cpu manager: narrow gives the pod one of the CPUs that it may use ("+cpus(narrowed)+")", err)
	second, err := s.startOther(k, exclusive("second"))
	if err == nil {
		err = eventually(func() error {
			if overlaps(cpus(second), cpus(narrowed)) || overlaps(cpus(second), cpus(store)) {
				return fmt.Errorf("it has CPUs %s, the narrow one %s, the store %s", cpus(second), cpus(narrowed), cpus(store))
			}
			return nil
		})
	}
	s.check("cpu manager: while narrow is in force, another pod gets a CPU that the narrow one leaves", err)
	_, err = s.kubectl(k, "delete", "pod", "-n", "shop", "second", s.timeout())
	s.check("cpu manager: that pod is deleted", err)
}

// cpus are the CPUs that a cgroup may use.
func cpus(cgroup string) string {
	text, _ := os.ReadFile("/sys/fs/cgroup" + cgroup + "/cpuset.cpus.effective")
	return strings.TrimSpace(string(text))
}

// startOther starts another pod of the shop, and returns the cgroup of its container.
func (s *suite) startOther(k *cluster, o otherPod) (string, error) {
	if err := s.create(k, o.object()); err != nil {
		return "", err
	}
	if err := s.podReady(k, "shop", o.name); err != nil {
		return "", err
	}
	id, err := s.kubectl(k, "get", "pod", "-n", "shop", o.name, "-o", "jsonpath={.status.containerStatuses[0].containerID}")
	found, _ := filepath.Glob("/sys/fs/cgroup/kubepods.slice/*/*" + strings.TrimPrefix(id, "containerd://") + "*")
	more, _ := filepath.Glob("/sys/fs/cgroup/kubepods.slice/*/*/*" + strings.TrimPrefix(id, "containerd://") + "*")
	if found = append(found, more...); err == nil && len(found) != 1 {
		err = fmt.Errorf("container %s has cgroups %v", id, found)
	}
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(found[0], "/sys/fs/cgroup"), nil
}
