package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// edition is one release of containerd: where its programs are, how it is told its folders, and what runs in it.
type edition struct {
	// title is in the lines of its checks, folder is its own below the suite's.
	title, folder string
	// bin has containerd, its shim and ctr; "" are those that are installed.
	bin string
	// config is config.toml, with DIR and PAUSE in it.
	config string
	// namespace, pod and uid are the pod's, batch is the container of ctr.
	namespace, pod, uid, batch string
	// importing are the flags of ctr image import.
	importing []string
}

// native is the snapshotter that needs nothing of the host's file systems.
var native = []string{"--snapshotter", "native"}

// installed is the containerd of the distribution, which knows no NRI before 1.7.
func installed() edition {
	return edition{title: "containerd", folder: "c", namespace: "shop", pod: "cart-0",
		uid: "3f5a1c2e-0d4b-4c6a-9e8f-1234567890ab", batch: "batch",
		importing: native, config: `version = 2
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
`}
}

// pinned is the containerd that tools/containerd builds, with NRI.
func pinned(bin string) edition {
	return edition{title: "containerd 2", folder: "n", bin: bin, namespace: "depot", pod: "crate-0",
		uid: "7c1d2e3f-5a6b-4d7c-8e9f-abcdef012345", batch: "night",
		importing: append([]string{"--local"}, native...), config: `version = 3
root = 'DIR/root'
state = 'DIR/state'
imports = []
[grpc]
  address = 'DIR/containerd.sock'
[ttrpc]
  address = 'DIR/containerd.sock.ttrpc'
[plugins.'io.containerd.internal.v1.opt']
  path = 'DIR/opt'
[plugins.'io.containerd.nri.v1.nri']
  disable = false
  socket_path = 'DIR/nri-socket/nri.sock'
  plugin_path = 'DIR/nri/plugins'
  plugin_config_path = 'DIR/nri/conf.d'
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'native'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'PAUSE'
[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['DIR/cni']
    conf_dir = 'DIR/cni'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    snapshotter = 'native'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = 'runc'
      SystemdCgroup = false
`}
}

// containerd is a containerd of our own, with Kubernetes' runtime interface (CRI).
type containerd struct {
	edition
	server *exec.Cmd
	// into begins the server's command line where its node has namespaces of its own.
	into []string
	// dir has its configuration, nri the plugin socket alone: pods mount that.
	dir, socket, nri string
	// sandbox and app are a pod's, others are sandboxes of more pods; ran says that the container of ctr runs.
	sandbox, app string
	others       []string
	ran          bool
}

// ownCgroup has the pods, below a cgroup named as the kubelet's.
const ownCgroup = "/e2e-unthrottle"

func (c *containerd) podCgroup() string { return ownCgroup + "/kubepods/burstable/pod" + c.uid }

// appCgroup is that of the pod's only container.
func (c *containerd) appCgroup() string { return c.podCgroup() + "/" + c.app }

func (c *containerd) batchCgroup() string { return ownCgroup + "/" + c.batch }

// program is one of its programs by name.
func (c *containerd) program(name string) string { return filepath.Join(c.bin, name) }

func (s *suite) startContainerd(e edition) *containerd {
	c := s.ownContainerd(e)
	if s.has(c.program("containerd"), c.program("ctr"), c.program("containerd-shim-runc-v2"), s.crictl) != nil {
		return nil
	}
	s.stops = append(s.stops, func() { s.stopContainerd(c) })
	version, _ := s.ask(nil, c.program("containerd"), "--version")
	fields := append(strings.Fields(version), "", "", "")
	if s.check(c.title+": "+fields[2]+" runs", s.configureContainerd(c)) != nil ||
		s.check(c.title+": a pod by CRI, a container by ctr", s.runContainerd(c)) != nil {
		return nil
	}
	return c
}

// ownContainerd is one whose folders are all in ours.
func (s *suite) ownContainerd(e edition) *containerd {
	dir := filepath.Join(s.dir, e.folder)
	return &containerd{edition: e, dir: dir, socket: filepath.Join(dir, "containerd.sock"), nri: filepath.Join(dir, "nri-socket")}
}

func (s *suite) configureContainerd(c *containerd) error {
	dir := c.dir
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "cni"), 0o700), os.MkdirAll(c.nri, 0o700)); err != nil {
		return err
	}
	config := strings.NewReplacer("DIR", dir, "PAUSE", pauseName).Replace(c.config)
	endpoint := "unix://" + c.socket
	for name, text := range map[string]string{"config.toml": config, "crictl.yaml": "runtime-endpoint: " + endpoint +
		"\nimage-endpoint: " + endpoint + "\ntimeout: 30\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return s.serveContainerd(c)
}

// serveContainerd starts the server, also anew.
func (s *suite) serveContainerd(c *containerd) (err error) {
	var env []string
	if c.bin != "" { // the shim is looked for on PATH
		env = []string{"PATH=" + c.bin + ":" + os.Getenv("PATH")}
	}
	c.server, err = s.server(c.folder+"-containerd", env, func() error { _, err := s.ctr(c, "version"); return err },
		append(slices.Clone(c.into), c.program("containerd"), "-c", filepath.Join(c.dir, "config.toml"))...)
	return err
}

func (s *suite) ctr(c *containerd, args ...string) (string, error) {
	return s.ask(nil, c.program("ctr"), append([]string{"-a", c.socket}, args...)...)
}

func (s *suite) cri(c *containerd, args ...string) (string, error) {
	return s.ask(nil, s.crictl, c.criFlags(args...)...)
}

// criFlags leads crictl to this containerd.
func (c *containerd) criFlags(args ...string) []string {
	return append([]string{"-c", filepath.Join(c.dir, "crictl.yaml")}, args...)
}

func (s *suite) importImage(c *containerd, namespace, layout string) error {
	_, err := s.ctr(c, slices.Concat([]string{"-n", namespace, "image", "import"}, c.importing, []string{layout})...)
	return err
}

func (s *suite) runContainerd(c *containerd) error {
	for _, namespace := range []string{"k8s.io", "default"} {
		if err := s.importImage(c, namespace, s.layout()); err != nil {
			return err
		}
	}
	if _, err := s.ctr(c, slices.Concat([]string{"-n", "default", "run", "-d"}, native,
		[]string{"--cpu-quota", "10000", "--cpu-period", "100000",
			"--cgroup", c.batchCgroup(), imageName, c.batch}, idle)...); err != nil {
		return err
	}
	c.ran = true
	type object = map[string]any
	dir := c.dir
	host := object{"network": 2, "pid": 1, "ipc": 2} // the host's network, as no CNI is here
	pod := object{"metadata": object{"name": c.pod, "namespace": c.namespace, "uid": c.uid}, "labels": object{"app": "crates"},
		"annotations":   object{"unthrottle.dev/objective": askedObjective, "unthrottle.dev/remedy": "pin"},
		"log_directory": filepath.Join(dir, "logs"),
		"linux":         object{"cgroup_parent": c.podCgroup(), "security_context": object{"namespace_options": host}}}
	app := object{"metadata": object{"name": "app"}, "image": object{"image": imageName}, "command": busy, "log_path": "app.log",
		"linux": object{"resources": object{"cpu_period": 100000, "cpu_quota": 10000},
			"security_context": object{"namespace_options": host}}}
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
	full := c.namespace + "/" + c.pod + "/"
	return map[string]want{
		c.appCgroup(): {name: full + "app", namespace: c.namespace, pod: c.pod, container: "app",
			image: imageName, runtime: "containerd", scope: "own"},
		c.podCgroup() + "/" + c.sandbox: {name: full + c.sandbox[:12], namespace: c.namespace, pod: c.pod, runtime: "containerd"},
		c.batchCgroup():                 {name: c.batch, container: c.batch, runtime: "containerd", scope: "own"},
	}
}

func (s *suite) containerdNames(c *containerd) {
	all, told, err := s.ls()
	s.check(c.title+": namespace, pod, container and image of a CRI pod; a container of ctr without a mark in its path",
		errors.Join(err, silent(told), named(all, c.names())))
	app := c.appCgroup()
	if l, ok := all[app]; ok {
		s.check(c.title+": QoS by the pod's cgroup", equal("QoS", value(l.QoS), "Burstable"))
	}
	pod := c.namespace + "/" + c.pod
	s.check(c.title+": TARGET as NAMESPACE/POD, NAMESPACE/POD/CONTAINER, POD, kubernetes:..., containerd:NAME, id",
		s.resolves(nil, map[string]string{
			pod: app, pod + "/app": app, c.pod: app, "kubernetes:" + pod + "/app": app, c.app[:10]: app,
			"containerd:" + c.batch: c.batchCgroup(), "kube-system/etcd": "", "other/" + c.pod: ""}))

	// The kubelet gives the pod's cgroup a limit; a container without one of its own has the pod's.
	err = newSettings(c.podCgroup()).setQuota(20000)
	if err == nil {
		err = s.resize(c, -1)
	}
	if err == nil {
		all, _, err = s.ls()
	}
	s.check(c.title+": the limit of the pod is of scope pod", errors.Join(err, equal("scope", value(all[app].Scope), "pod")))
}

// resize has the runtime set the app's quota, as the kubelet does; -1 is none.
func (s *suite) resize(c *containerd, quotaUS int) error {
	_, err := s.cri(c, "update", "--cpu-quota", strconv.Itoa(quotaUS), "--cpu-period", "100000", c.app)
	return err
}

func (s *suite) stopContainerd(c *containerd) {
	for _, sandbox := range append(c.others, c.sandbox) {
		if sandbox != "" {
			_, _ = s.cri(c, "rmp", "-f", sandbox)
		}
	}
	if c.ran {
		_, _ = s.ctr(c, "-n", "default", "task", "rm", "-f", c.batch)
		_, _ = s.ctr(c, "-n", "default", "container", "rm", c.batch)
	}
	end(c.server)
}
