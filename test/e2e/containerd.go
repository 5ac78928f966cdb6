package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// containerd is a containerd of our own, with Kubernetes' runtime interface (CRI).
type containerd struct {
	server *exec.Cmd
	socket string
	// sandbox and app are a pod's; batch is one of ctr.
	sandbox, app string
	batch        bool
}

// Pods are below a cgroup named as the kubelet's, but our own.
const (
	ownCgroup = "/e2e-unthrottle"
	podUID    = "3f5a1c2e-0d4b-4c6a-9e8f-1234567890ab"
	podCgroup = ownCgroup + "/kubepods/burstable/pod" + podUID
)

func (s *suite) startContainerd() *containerd {
	if s.has("containerd", "ctr", "containerd-shim-runc-v2", s.crictl) != nil {
		return nil
	}
	dir := filepath.Join(s.dir, "c")
	c := &containerd{socket: filepath.Join(dir, "containerd.sock")}
	s.stops = append(s.stops, func() { s.stopContainerd(c) })
	version, _ := s.ask(nil, "containerd", "--version")
	fields := append(strings.Fields(version), "", "", "")
	if s.check("containerd: "+fields[2]+" runs", s.serveContainerd(c)) != nil ||
		s.check("containerd: a pod by CRI, a container by ctr", s.runContainerd(c)) != nil {
		return nil
	}
	return c
}

func (s *suite) serveContainerd(c *containerd) (err error) {
	dir := filepath.Dir(c.socket)
	if err := os.MkdirAll(filepath.Join(dir, "cni"), 0o700); err != nil {
		return err
	}
	config := strings.NewReplacer("DIR", dir, "PAUSE", pauseName).Replace(`version = 2
root = 'DIR/root'
state = 'DIR/state'
imports = []
[grpc]
  address = 'DIR/containerd.sock'
[ttrpc]
  address = 'DIR/containerd.sock.ttrpc'
[plugins.'io.containerd.internal.v1.opt']
  path = 'DIR/opt'
[plugins.'io.containerd.grpc.v1.cri']
  sandbox_image = 'PAUSE'
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins.'io.containerd.grpc.v1.cri'.cni]
    bin_dir = 'DIR/cni'
    conf_dir = 'DIR/cni'
  [plugins.'io.containerd.grpc.v1.cri'.containerd]
    snapshotter = 'native'
`)
	endpoint := "unix://" + c.socket
	for name, text := range map[string]string{"config.toml": config, "crictl.yaml": "runtime-endpoint: " + endpoint + "\nimage-endpoint: " + endpoint + "\ntimeout: 30\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	c.server, err = s.server("containerd", nil, func() error { _, err := s.ctr(c, "version"); return err }, "containerd", "-c", filepath.Join(dir, "config.toml"))
	return err
}

func (s *suite) ctr(c *containerd, args ...string) (string, error) {
	return s.ask(nil, "ctr", append([]string{"-a", c.socket}, args...)...)
}

func (s *suite) cri(c *containerd, args ...string) (string, error) {
	return s.ask(nil, s.crictl, append([]string{"-c", filepath.Join(filepath.Dir(c.socket), "crictl.yaml")}, args...)...)
}

func (s *suite) runContainerd(c *containerd) error {
	for _, namespace := range []string{"k8s.io", "default"} {
		if _, err := s.ctr(c, "-n", namespace, "image", "import", "--snapshotter", "native", s.layout()); err != nil {
			return err
		}
	}
	if _, err := s.ctr(c, append([]string{"-n", "default", "run", "-d", "--snapshotter", "native", "--cpu-quota", "10000", "--cpu-period", "100000",
		"--cgroup", ownCgroup + "/batch", imageName, "batch"}, idle...)...); err != nil {
		return err
	}
	c.batch = true
	type object = map[string]any
	dir := filepath.Dir(c.socket)
	host := object{"network": 2, "pid": 1, "ipc": 2} // the host's network, as no CNI is here
	pod := object{"metadata": object{"name": "cart-0", "namespace": "shop", "uid": podUID}, "log_directory": filepath.Join(dir, "logs"),
		"linux": object{"cgroup_parent": podCgroup, "security_context": object{"namespace_options": host}}}
	app := object{"metadata": object{"name": "app"}, "image": object{"image": imageName}, "command": busy, "log_path": "app.log",
		"linux": object{"resources": object{"cpu_period": 100000, "cpu_quota": 10000}, "security_context": object{"namespace_options": host}}}
	var errs []error
	for name, o := range map[string]object{"pod.json": pod, "app.json": app} {
		text, err := json.Marshal(o)
		errs = append(errs, err, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var err error
	if c.sandbox, err = s.cri(c, "runp", filepath.Join(dir, "pod.json")); err != nil {
		return err
	}
	if c.app, err = s.cri(c, "create", c.sandbox, filepath.Join(dir, "app.json"), filepath.Join(dir, "pod.json")); err != nil {
		return err
	}
	_, err = s.cri(c, "start", c.app)
	return err
}

func (c *containerd) names() map[string]want {
	return map[string]want{
		podCgroup + "/" + c.app:     {name: "shop/cart-0/app", namespace: "shop", pod: "cart-0", container: "app", image: imageName, runtime: "containerd", scope: "own"},
		podCgroup + "/" + c.sandbox: {name: "shop/cart-0/" + c.sandbox[:12], namespace: "shop", pod: "cart-0", runtime: "containerd"},
		ownCgroup + "/batch":        {name: "batch", container: "batch", runtime: "containerd", scope: "own"},
	}
}

func (s *suite) containerdNames(c *containerd) {
	all, told, err := s.ls()
	s.check("containerd: namespace, pod, container and image of a CRI pod; a container of ctr without a mark in its path",
		errors.Join(err, silent(told), named(all, c.names())))
	app := podCgroup + "/" + c.app
	if l, ok := all[app]; ok {
		s.check("containerd: QoS by the pod's cgroup", equal("QoS", value(l.QoS), "Burstable"))
	}
	s.check("containerd: TARGET as NAMESPACE/POD, NAMESPACE/POD/CONTAINER, POD, kubernetes:..., containerd:NAME, id", s.resolves(nil, map[string]string{
		"shop/cart-0": app, "shop/cart-0/app": app, "cart-0": app, "kubernetes:shop/cart-0/app": app, c.app[:10]: app,
		"containerd:batch": ownCgroup + "/batch", "kube-system/etcd": "", "other/cart-0": ""}))

	// The kubelet gives the pod's cgroup a limit; a container without one of its own has the pod's.
	err = newSettings(podCgroup).setQuota(20000)
	if err == nil {
		_, err = s.cri(c, "update", "--cpu-quota", "-1", "--cpu-period", "100000", c.app)
	}
	if err == nil {
		all, _, err = s.ls()
	}
	s.check("containerd: the limit of the pod is of scope pod", errors.Join(err, equal("scope", value(all[app].Scope), "pod")))
}

func (s *suite) stopContainerd(c *containerd) {
	if c.sandbox != "" {
		_, _ = s.cri(c, "rmp", "-f", c.sandbox)
	}
	if c.batch {
		_, _ = s.ctr(c, "-n", "default", "task", "rm", "-f", "batch")
		_, _ = s.ctr(c, "-n", "default", "container", "rm", "batch")
	}
	end(c.server)
}
