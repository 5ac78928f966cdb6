package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// agentPod is the agent in a pod of CRI, with the rights that the chart gives it: what the kubelet makes of its objects.
type agentPod struct {
	agent
	// sandbox and container are their ids.
	sandbox, container string
	// restore is the command that the kubelet runs before it stops the container; nil: none.
	restore []string
}

// chartObject is what of the chart's objects is needed.
type chartObject struct {
	Kind string
	Data map[string]string
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args      []string
					Lifecycle struct {
						PreStop struct {
							Exec struct{ Command []string }
						} `yaml:"preStop"`
					}
					SecurityContext struct {
						Privileged             bool
						AllowEscalation        bool `yaml:"allowPrivilegeEscalation"`
						ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
						Capabilities           struct{ Drop, Add []string }
					} `yaml:"securityContext"`
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
						ReadOnly  bool   `yaml:"readOnly"`
						Recursive string `yaml:"recursiveReadOnly"`
					} `yaml:"volumeMounts"`
				}
			}
		}
	}
}

// agentPodUID is the pod's.
const agentPodUID = "5e1f0c3a-2b6d-4f7a-8c9e-0123456789ab"

// chartPods runs the agent as a pod of each tier, beside the pinned containerd's own pod.
func (s *suite) chartPods(c *containerd, o chartOptions) {
	if s.check("chart: the agent's image", errors.Join(s.importImage(c, "k8s.io", o.image), s.limitPod(c))) != nil {
		return
	}
	s.observePod(c, o)
	s.curePod(c, o)
}

func (s *suite) observePod(c *containerd, o chartOptions) {
	p, err := s.startAgentPod(c, o, "observe")
	if s.check("chart: the agent runs in a pod with the rights of tier observe", err) != nil {
		return
	}
	defer s.stopAgentPod(c, p)
	got, err := s.inAgentPod(c, p, "ls")
	s.check("chart: it names namespace, pod and container, without the API and without NRI",
		errors.Join(err, contains(got, c.namespace+"/"+c.pod+"/app")))
	got, err = s.inAgentPod(c, p, "check")
	s.check("chart: its BPF programs load, not privileged", errors.Join(err, contains(got, "the probe loads")))
	series := fmt.Sprintf(`unthrottle_container_throttled_periods_total{container="app",id="%s",namespace="%s",pod="%s"}`, c.appCgroup(), c.namespace, c.pod)
	s.check("chart: its /metrics count the throttled periods", eventually(func() error {
		page, err := p.page("/metrics")
		return errors.Join(err, positive(page, series))
	}))
	kernel := newSettings(c.appCgroup())
	before := kernel.read()
	_, err = s.inAgentPod(c, p, "apply", c.namespace+"/"+c.pod, "--remedy", "raise", "--to", "0.2")
	err = wants(err, "read-only")
	s.check("chart: a change is refused, and nothing is changed", errors.Join(err, equal("settings", kernel.read(), before)))
}

func (s *suite) curePod(c *containerd, o chartOptions) {
	p, err := s.startAgentPod(c, o, "cure")
	if err == nil {
		err = eventually(func() error {
			page, err := p.page("/metrics")
			return errors.Join(err, contains(page, "unthrottle_nri_connected 1"))
		})
	}
	if s.check("chart: the agent runs with the rights of tier cure, and has an NRI session", err) != nil {
		return
	}
	defer s.stopAgentPod(c, p)
	kernel := newSettings(c.appCgroup())
	before := kernel.read()
	_, err = s.inAgentPod(c, p, "apply", c.namespace+"/"+c.pod, "--remedy", "raise", "--to", "0.2")
	s.check("chart: unthrottle in its pod changes a limit, not privileged", errors.Join(err, equal("quota", kernel.quota(), "20000")))
	_, err = s.cri(c, append([]string{"exec", p.container}, p.restore...)...)
	if p.restore == nil {
		err = errors.New("the chart has no preStop command")
	}
	s.check("chart: the command before its stop puts it back byte for byte", errors.Join(err, equal("settings", kernel.read(), before)))
}

// startAgentPod makes a pod of the golden file's objects.
func (s *suite) startAgentPod(c *containerd, o chartOptions, tier string) (*agentPod, error) {
	objects, err := chartObjects(o.golden(tier))
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p := &agentPod{agent: agent{address: address}}
	dir := filepath.Join(s.dir, "agent-"+tier)
	// The pod has the machine's network, as no CNI is here, and looks at our own cgroups alone.
	text := strings.Replace(objects["ConfigMap"].Data["unthrottle.yaml"], `":9469"`, p.address, 1) + "\nscope: " + ownCgroup + "\n"
	sources := map[string]string{"config": filepath.Join(dir, "unthrottle.yaml"), "cgroup": "/sys/fs/cgroup",
		"state": filepath.Join(dir, "state"),
		"tmp":   filepath.Join(dir, "tmp"), "nri": c.nri}
	if err := errors.Join(os.MkdirAll(sources["tmp"], 0o700), os.MkdirAll(sources["state"], 0o755),
		os.WriteFile(sources["config"], []byte(text), 0o644)); err != nil {
		return nil, err
	}
	if tier == "observe" { // an emptyDir
		if err := os.Chmod(sources["state"], 0o777); err != nil {
			return nil, err
		}
	}
	type object = map[string]any
	container := objects["DaemonSet"].Spec.Template.Spec.Containers[0]
	p.restore = container.Lifecycle.PreStop.Exec.Command
	rights := container.SecurityContext
	var mounts []object
	for _, m := range container.VolumeMounts {
		mounts = append(mounts, object{"container_path": m.MountPath, "host_path": sources[m.Name],
			"readonly": m.ReadOnly, "recursive_read_only": m.Recursive != ""})
	}
	host := object{"network": 2, "pid": 2, "ipc": 1}
	pod := object{"metadata": object{"name": "agent-" + tier, "namespace": "unthrottle", "uid": agentPodUID}, "log_directory": dir,
		"linux": object{"cgroup_parent": ownCgroup + "/kubepods/burstable/pod" + agentPodUID,
			"security_context": object{"namespace_options": host}}}
	made := object{"metadata": object{"name": "agent"}, "image": object{"image": "docker.io/library/unthrottle:e2e"},
		"args": container.Args, "log_path": "agent.log", "mounts": mounts,
		"linux": object{"security_context": object{"namespace_options": host, "privileged": rights.Privileged,
			"readonly_rootfs": rights.ReadOnlyRootFilesystem,
			"no_new_privs":    !rights.AllowEscalation, "seccomp": object{"profile_type": 0}, "run_as_user": object{"value": 0},
			"capabilities": object{"drop_capabilities": rights.Capabilities.Drop, "add_capabilities": rights.Capabilities.Add}}}}
	podFile, madeFile := filepath.Join(dir, "pod.json"), filepath.Join(dir, "agent.json")
	for name, o := range map[string]object{podFile: pod, madeFile: made} {
		text, bad := json.Marshal(o)
		err = errors.Join(err, bad, os.WriteFile(name, text, 0o600))
	}
	if err == nil {
		p.sandbox, err = s.cri(c, "runp", podFile)
	}
	if err == nil {
		p.container, err = s.cri(c, "create", p.sandbox, madeFile, podFile)
	}
	if err == nil {
		_, err = s.cri(c, "start", p.container)
	}
	p.log = filepath.Join(dir, "agent.log")
	if err == nil {
		err = p.explain(eventually(func() error { _, err := p.page("/readyz"); return err }))
	}
	if err != nil {
		s.stopAgentPod(c, p)
	}
	return p, err
}

// chartObjects reads the objects of a tier by kind.
func chartObjects(name string) (map[string]chartObject, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	all := map[string]chartObject{}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o chartObject
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[o.Kind] = o
	}
	if len(all["DaemonSet"].Spec.Template.Spec.Containers) != 1 {
		return nil, fmt.Errorf("%s has no DaemonSet of one container", name)
	}
	return all, nil
}

// freeAddress asks the kernel for a port of loopback.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (s *suite) inAgentPod(c *containerd, p *agentPod, args ...string) (string, error) {
	got, err := s.run(nil, nil, s.crictl, c.criFlags(slices.Concat([]string{"exec", p.container, "unthrottle"}, args)...)...)
	return got.out, err
}

func (s *suite) stopAgentPod(c *containerd, p *agentPod) {
	if p.sandbox != "" {
		_, _ = s.cri(c, "rmp", "-f", p.sandbox)
	}
}
