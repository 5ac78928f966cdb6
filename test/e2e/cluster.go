package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// cluster is Kubernetes on this machine: one node, its containers in a pinned containerd.
type cluster struct {
	*containerd
	// dir is its folder, bin has the programs.
	dir, bin string
	// api is the address of the API server, node the node's name.
	api, node string
	// whole says that it has this machine for itself, a node with systemd, and its folders and cgroups where a distribution has them.
	whole bool
	// config leads an administrator's clients to it.
	config  string
	servers []*exec.Cmd
	before  hostSettings
}

// hostSettings are settings of the host by file.
type hostSettings map[string]string

// readHostSettings reads those that the kubelet sets to values of its own.
func readHostSettings() hostSettings {
	all := hostSettings{}
	for _, name := range []string{"kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "vm/panic_on_oom",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		if text, err := os.ReadFile("/proc/sys/" + name); err == nil {
			all[name] = strings.TrimSpace(string(text))
		}
	}
	return all
}

// restore writes those that differ.
func (h hostSettings) restore() error {
	var errs []error
	now := readHostSettings()
	for name, text := range h {
		if now[name] != text {
			errs = append(errs, os.WriteFile("/proc/sys/"+name, []byte(text), 0o644))
		}
	}
	return errors.Join(errs...)
}

// startCluster starts all of it. What it starts is stopped by stopAll.
func (s *suite) startCluster(bin, runtime string) *cluster {
	// The node's name is its address for the API server, so that the kubelet listens on loopback alone.
	k := &cluster{dir: filepath.Join(s.dir, "k"), bin: bin, node: "localhost"}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"} {
		if s.has(k.program(name)) != nil {
			return nil
		}
	}
	k.containerd = s.ownContainerd(pinned(runtime))
	if s.has(k.containerd.program("containerd"), k.containerd.program("ctr"),
		k.containerd.program("containerd-shim-runc-v2"), s.crictl) != nil {
		return nil
	}
	k.config = filepath.Join(k.dir, "admin.kubeconfig")
	k.before = readHostSettings()
	s.stops = append(s.stops, func() { s.stopCluster(k) })
	if s.check("cluster: containerd 2 runs",
		errors.Join(s.configureContainerd(k.containerd), s.importImage(k.containerd, "k8s.io", s.layout()))) != nil ||
		s.check("cluster: etcd and the API server answer", s.startAPI(k)) != nil ||
		s.check("cluster: controller-manager, scheduler and kubelet run, the node is ready", s.startNode(k)) != nil {
		return nil
	}
	return k
}

// program is one of Kubernetes' programs by name.
func (k *cluster) program(name string) string { return filepath.Join(k.bin, name) }

// file is a file of the cluster's folder.
func (k *cluster) file(name string) string { return filepath.Join(k.dir, name) }

// serve starts one of its servers.
func (s *suite) serve(k *cluster, name string, ready func() error, args ...string) error {
	cmd, err := s.server(name, nil, ready, append([]string{k.program(name)}, args...)...)
	if cmd != nil {
		k.servers = append(k.servers, cmd)
	}
	return err
}

// users are those who may ask the API server, by token, with their groups.
func (k *cluster) users() map[string]struct{ name, groups string } {
	return map[string]struct{ name, groups string }{
		"admin": {"admin", "system:masters"}, "manager": {"system:kube-controller-manager", ""},
		"scheduler": {"system:kube-scheduler", ""}, "proxy": {"system:kube-proxy", ""},
		"node": {"system:node:" + k.node, "system:nodes"}, "second": {"system:node:" + secondName, "system:nodes"},
	}
}

// writeClients writes the files that lead the API server's clients to it, and its keys.
func (k *cluster) writeClients() error {
	if err := os.MkdirAll(k.file("pki"), 0o700); err != nil {
		return err
	}
	var tokens strings.Builder
	for short, u := range k.users() {
		token := rand.Text()
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", token, u.name, short, u.groups)
		text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: %s, user: {token: %s}}]
contexts: [{name: e2e, context: {cluster: e2e, user: %s}}]
current-context: e2e
`, k.api, k.file("pki/apiserver.crt"), short, token, short)
		if err := os.WriteFile(k.file(short+".kubeconfig"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return errors.Join(os.WriteFile(k.file("tokens.csv"), []byte(tokens.String()), 0o600), k.writeAccountKeys())
}

// startAPI starts etcd and the API server.
func (s *suite) startAPI(k *cluster) error {
	port := freePort()
	k.api = "127.0.0.1:" + port
	if err := k.writeClients(); err != nil {
		return err
	}
	store, peer := "http://127.0.0.1:"+freePort(), "http://127.0.0.1:"+freePort()
	if err := s.serve(k, "etcd", func() error { return get(store+"/health", nil) }, "--name", "e2e", "--data-dir",
		k.file("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", store, "--advertise-client-urls", store, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "e2e="+peer, "--log-level", "warn"); err != nil {
		return err
	}
	// The API server makes its own certificate in pki. Its service has an address of the loopback, where forward answers.
	if err := s.forward(serviceAddress, k.api); err != nil {
		return err
	}
	return s.serveAPI(k, "--etcd-servers", store, "--bind-address", "127.0.0.1", "--secure-port", port,
		"--endpoint-reconciler-type", "none", "--service-cluster-ip-range", serviceRange, "--kubelet-preferred-address-types", "Hostname")
}

// serveAPI starts the API server, with flags of its own.
func (s *suite) serveAPI(k *cluster, flags ...string) error {
	return s.serve(k, "kube-apiserver", func() error { _, err := s.kubectl(k, "get", "--raw", "/readyz"); return err },
		append(flags, "--cert-dir", k.file("pki"),
			"--authorization-mode", "Node,RBAC", "--token-auth-file", k.file("tokens.csv"), "--enable-admission-plugins", "NodeRestriction",
			"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", k.file("pki/sa.pub"),
			"--service-account-signing-key-file", k.file("pki/sa.key"))...)
}

// Kubernetes gives its own service the first address of the range. Pods have the host's network, so that it is one of the
// loopback.
const (
	serviceRange   = "127.96.0.0/16"
	serviceAddress = "127.96.0.1:443"
)

// forward gives connections to one address to another, as kube-proxy does for a service.
func (s *suite) forward(from, to string) error { return s.forwardBetween(nil, from, nil, to) }

// forwardBetween does so for addresses of two networks; nil is this program's.
func (s *suite) forwardBetween(here *os.File, from string, there *os.File, to string) error {
	var listener net.Listener
	err := inNetwork(here, func() (err error) { listener, err = net.Listen("tcp", from); return err })
	if err != nil {
		return err
	}
	s.stops = append(s.stops, func() { _ = listener.Close() })
	go func() {
		for {
			asked, err := listener.Accept()
			if err != nil {
				return
			}
			var answers net.Conn
			if err := inNetwork(there, func() (err error) { answers, err = net.Dial("tcp", to); return err }); err != nil {
				_ = asked.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{asked, answers}, {answers, asked}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				}()
			}
		}
	}()
	return nil
}

// writeAccountKeys writes the keys of service accounts' tokens.
func (k *cluster) writeAccountKeys() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	private := x509.MarshalPKCS1PrivateKey(key)
	return errors.Join(
		os.WriteFile(k.file("pki/sa.key"), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: private}), 0o600),
		os.WriteFile(k.file("pki/sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600))
}

// none is for servers that are ready when others say so.
func none() error { return nil }

// startControllers starts the controller-manager and the scheduler.
func (s *suite) startControllers(k *cluster) error {
	return errors.Join(
		s.serve(k, "kube-controller-manager", none, "--kubeconfig", k.file("manager.kubeconfig"), "--bind-address", "127.0.0.1",
			"--secure-port", freePort(), "--cert-dir", k.file("pki-manager"), "--leader-elect=false",
			"--use-service-account-credentials=true",
			"--root-ca-file", k.file("pki/apiserver.crt"), "--service-account-private-key-file", k.file("pki/sa.key")),
		s.serve(k, "kube-scheduler", none, "--kubeconfig", k.file("scheduler.kubeconfig"), "--bind-address", "127.0.0.1",
			"--secure-port", freePort(), "--cert-dir", k.file("pki-scheduler"), "--leader-elect=false"))
}

// startNode starts what runs pods.
func (s *suite) startNode(k *cluster) error {
	if err := errors.Join(s.startControllers(k), makeCgroup(ownCgroup)); err != nil {
		return err
	}
	cmd, err := s.runKubelet(k, worker{containerd: k.containerd, name: k.node, user: "node", kubelet: "kubelet", dir: k.dir,
		port: freePort()})
	if cmd != nil {
		k.servers = append(k.servers, cmd)
	}
	return err
}

// worker is what runs the pods of a node.
type worker struct {
	*containerd
	// name is the node's, user its kubelet among the API server's users, kubelet the server's.
	name, user, kubelet string
	// dir is its folder, port the kubelet's.
	dir, port string
}

// runKubelet starts a node's kubelet, and waits until the node is ready.
func (s *suite) runKubelet(k *cluster, w worker) (*exec.Cmd, error) {
	// The runtime wants a network that parses. No plugin is called: all pods have the host's network.
	network := `{"cniVersion":"0.4.0","name":"none","plugins":[{"type":"loopback"}]}`
	config := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: %s
healthzPort: %s
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: %s
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix://%s
podLogsDir: %s
volumePluginDir: %s
oomScoreAdj: 0
makeIPTablesUtilChains: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 50Mi, nodefs.available: 1%%, nodefs.inodesFree: 1%%, imagefs.available: 1%%}
nodeStatusUpdateFrequency: 5s
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
`, w.port, freePort(), ownCgroup, w.socket, w.file("logs"), w.file("plugins"))
	if err := errors.Join(os.MkdirAll(w.dir, 0o700),
		os.WriteFile(filepath.Join(w.containerd.dir, "cni", "10-none.conflist"), []byte(network), 0o600),
		os.WriteFile(w.file("kubelet.yaml"), []byte(config), 0o600)); err != nil {
		return nil, err
	}
	cmd, err := s.server(w.kubelet, nil, none, append(slices.Clone(w.into), k.program("kubelet"), "--config", w.file("kubelet.yaml"),
		"--kubeconfig", k.file(w.user+".kubeconfig"), "--root-dir", w.file("kubelet"), "--cert-dir", w.file("pki-kubelet"),
		"--hostname-override", w.name)...)
	if err == nil {
		err = s.nodeReady(k, w.name)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, s.log(w.kubelet))
	}
	return cmd, err
}

// file is a file of the node's folder.
func (w worker) file(name string) string { return filepath.Join(w.dir, name) }

// nodeReady waits until the API server has a node as ready.
func (s *suite) nodeReady(k *cluster, name string) error {
	return eventually(func() error {
		got, err := s.kubectl(k, "get", "node", name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		return errors.Join(err, equal("Ready", got, "True"))
	})
}

// podCgroup is the cgroup of a burstable pod.
func (k *cluster) podCgroup(uid string) string {
	if k.whole {
		return "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"
	}
	return ownCgroup + "/kubepods/burstable/pod" + uid
}

// containerCgroup is that of a container in it.
func (k *cluster) containerCgroup(pod, id string) string {
	if k.whole {
		return pod + "/cri-containerd-" + id + ".scope"
	}
	return pod + "/" + id
}

// makeCgroup makes a cgroup in every hierarchy. On version 1 a cpuset begins empty, and takes no process then.
func makeCgroup(path string) error {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		roots = []string{"/sys/fs/cgroup/cgroup.procs"}
	}
	var errs []error
	for _, procs := range roots {
		root := filepath.Dir(procs)
		errs = append(errs, os.MkdirAll(root+path, 0o755))
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			text, err := os.ReadFile(filepath.Join(root, name))
			if err != nil { // another controller's, or version 2, which has none at its root
				continue
			}
			errs = append(errs, os.WriteFile(filepath.Join(root+path, name), text, 0o644))
		}
	}
	return errors.Join(errs...)
}

// kubectl asks the API server as its administrator, and returns all that it said.
func (s *suite) kubectl(k *cluster, args ...string) (string, error) {
	got, err := s.run(nil, []string{"KUBECONFIG=" + k.config}, k.program("kubectl"), args...)
	return got.out, err
}

// create gives objects to the API server.
func (s *suite) create(k *cluster, objects string) error {
	_, err := s.run(strings.NewReader(objects), []string{"KUBECONFIG=" + k.config}, k.program("kubectl"), "apply", "-f", "-")
	return err
}

// stopCluster stops all of it, from what makes pods to what keeps them.
func (s *suite) stopCluster(k *cluster) {
	for i := len(k.servers) - 1; i >= 0; i-- {
		if filepath.Base(k.servers[i].Path) == "kube-apiserver" { // pods that are left, before the last two
			_, _ = s.cri(k.containerd, "rmp", "-f", "-a")
		}
		end(k.servers[i])
	}
	end(k.containerd.server)
	// The kubelet mounts its folder on itself, to share mounts with pods, and leaves that.
	_ = syscall.Unmount(k.file("kubelet"), 0)
	s.check("left: the host's settings are what they were before the kubelet", k.before.restore())
}
