package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Addresses of the node, of its pods and of services.
const (
	nodeAddress  = "192.0.2.10"
	podRange     = "10.244.0.0/24"
	nodeServices = "10.96.0.0/16"
)

// onNode runs the checks of a machine that is a node, with systemd and cgroup v2. All of it is for us: nothing is put back.
func (s *suite) onNode(where programs, only []string, o chartOptions) {
	s.units, s.dir = true, "/var/lib/e2e"
	if s.check("node: cgroup v2, systemd and AppArmor", errors.Join(os.MkdirAll(s.dir, 0o755), aNode())) != nil {
		return
	}
	if s.afterReset(where, o) {
		return
	}
	if slices.Contains(only, "systemd") {
		s.onSystemd()
	}
	if slices.Contains(only, "hard") {
		s.onHardNode()
	}
	if !slices.Contains(only, "node") ||
		s.has("busybox", "runc", o.helm) != nil || s.check("an image", s.makeImages()) != nil {
		return
	}
	if k := s.startWholeCluster(where); k != nil {
		s.kubernetes(k, o)
	}
}

// aNode refuses a machine that is none, or that does not say that it is the lab's.
func aNode() error {
	if os.Getenv("UNTHROTTLE_LAB") == "" {
		return errors.New("this is not a guest of the lab: make e2e-node")
	}
	init, err := os.ReadFile("/proc/1/comm")
	_, bad := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	armor, worse := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	return errors.Join(err, bad, worse, equal("process 1", strings.TrimSpace(string(init)), "systemd"),
		equal("AppArmor", strings.TrimSpace(string(armor)), "Y"))
}

// nodeContainerd is the containerd of a node that has systemd: folders are the distribution's, pods have AppArmor and a network.
func nodeContainerd(bin string) *containerd {
	e := pinned(bin)
	e.folder, e.importing = "node", []string{"--local"}
	e.config = `version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'PAUSE'
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['CNI']
  conf_dir = 'DIR/cni'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    SystemdCgroup = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun]
  runtime_type = 'io.containerd.runc.v2'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun.options]
    BinaryName = 'crun'
    SystemdCgroup = true
`
	return &containerd{edition: e, dir: "/etc/containerd", socket: "/run/containerd/containerd.sock", nri: "/var/run/nri"}
}

// network is the units' network: an address of the node, and a route, as a machine with a network card has them.
const network = `[Unit]
Description=An address for the node
Before=network.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'ip link add node0 type dummy && ip addr add ` + nodeAddress + `/24 dev node0 && ip link set node0 up && ip route add default dev node0'
[Install]
WantedBy=multi-user.target
`

// wholeCluster is a cluster whose only node is this machine.
func (s *suite) wholeCluster(where programs) *cluster {
	k := &cluster{containerd: nodeContainerd(where.containerd), dir: filepath.Join(s.dir, "k"), bin: where.kubernetes, node: "node",
		api: nodeAddress + ":6443", whole: true}
	k.config = k.file("admin.kubeconfig")
	k.containerd.edition.config = strings.ReplaceAll(k.containerd.edition.config, "CNI", where.cni)
	return k
}

// startWholeCluster starts it.
func (s *suite) startWholeCluster(where programs) *cluster {
	k := s.wholeCluster(where)
	if s.check("node: a network", errors.Join(os.WriteFile("/etc/systemd/system/node-network.service", []byte(network), 0o644),
		s.systemctl("daemon-reload"), s.systemctl("enable", "--now", "node-network"))) != nil ||
		s.check("node: containerd 2 runs as a unit", errors.Join(s.configureContainerd(k.containerd),
			s.importImage(k.containerd, "k8s.io", s.layout()), k.writeNetwork())) != nil ||
		s.check("node: etcd and the API server answer", s.startWholeAPI(k)) != nil ||
		s.check("node: controller-manager, scheduler, kube-proxy and a kubelet with its defaults run, the node is ready",
			s.startWholeNode(k)) != nil {
		return nil
	}
	return k
}

func (s *suite) systemctl(args ...string) error {
	_, err := s.run(nil, nil, "systemctl", args...)
	return err
}

// unit starts a server as a unit that systemd starts again whenever it ends, also after a reboot.
func (s *suite) unit(name string, env []string, ready func() error, args ...string) error {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = strconv.Quote(arg)
	}
	for i, variable := range env {
		env[i] = "Environment=" + strconv.Quote(variable)
	}
	text := fmt.Sprintf(`[Unit]
Description=%s
After=node-network.service
StartLimitIntervalSec=0
[Service]
ExecStart=%s
# Half of what servers of Kubernetes do on emulated CPUs is to collect garbage.
Environment=GOGC=500
%s
Restart=always
RestartSec=1
Delegate=yes
KillMode=process
LimitNOFILE=1048576
TasksMax=infinity
OOMScoreAdjust=-999
[Install]
WantedBy=multi-user.target
`, name, strings.Join(quoted, " "), strings.Join(env, "\n"))
	if err := errors.Join(os.WriteFile("/etc/systemd/system/"+name+".service", []byte(text), 0o644),
		s.systemctl("daemon-reload"), s.systemctl("enable", "--now", name)); err != nil {
		return err
	}
	return s.untilReady(name, 600, ready)
}

// writeNetwork writes the pods' network: a bridge of the node.
func (k *cluster) writeNetwork() error {
	text := fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,
"ipam":{"type":"host-local","ranges":[[{"subnet":%q}]],"routes":[{"dst":"0.0.0.0/0"}]}},{"type":"loopback"}]}`, podRange)
	return os.WriteFile(filepath.Join(k.containerd.dir, "cni", "10-pods.conflist"), []byte(text), 0o644)
}

func (s *suite) startWholeAPI(k *cluster) error {
	if err := errors.Join(k.writeClients(), k.writeKubeletCA()); err != nil {
		return err
	}
	const store = "http://127.0.0.1:2379"
	if err := s.serve(k, "etcd", func() error { return get(store+"/health", nil) }, "--data-dir", k.file("etcd"),
		"--log-level", "warn"); err != nil {
		return err
	}
	return s.serveAPI(k, "--etcd-servers", store, "--advertise-address", nodeAddress, "--service-cluster-ip-range", nodeServices,
		"--kubelet-preferred-address-types", "InternalIP",
		"--kubelet-client-certificate", k.file("pki/kubelet-client.crt"), "--kubelet-client-key", k.file("pki/kubelet-client.key"))
}

// writeKubeletCA writes the authority that the kubelet trusts, and the API server's certificate for it.
func (k *cluster) writeKubeletCA() error {
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "e2e"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign}
	client := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		Subject:  pkix.Name{CommonName: "kube-apiserver", Organization: []string{"system:masters"}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	signing, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	var errs []error
	for name, c := range map[string]struct {
		certificate *x509.Certificate
		key         *rsa.PrivateKey
	}{"kubelet-ca": {authority, signing}, "kubelet-client": {client, key}} {
		signed, err := x509.CreateCertificate(rand.Reader, c.certificate, authority, &c.key.PublicKey, signing)
		errs = append(errs, err,
			os.WriteFile(k.file("pki/"+name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600),
			os.WriteFile(k.file("pki/"+name+".key"), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY",
				Bytes: x509.MarshalPKCS1PrivateKey(c.key)}), 0o600))
	}
	return errors.Join(errs...)
}

// kubeletDefaults is the kubelet's file. What it leaves out has the kubelet's default, cgroup v2 and systemd's driver too.
const kubeletDefaults = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {x509: {clientCAFile: %q}}
containerRuntimeEndpoint: unix://%s
`

func (s *suite) startWholeNode(k *cluster) error {
	return errors.Join(s.startControllers(k),
		s.serve(k, "kube-proxy", none, "--kubeconfig", k.file("proxy.kubeconfig"), "--hostname-override", k.node,
			"--proxy-mode", "nftables", "--cluster-cidr", podRange),
		s.startKubelet(k, ""))
}

// startKubelet starts the kubelet with its defaults and what is added to its file, also anew.
func (s *suite) startKubelet(k *cluster, added string) error {
	text := fmt.Sprintf(kubeletDefaults, k.file("pki/kubelet-ca.crt"), k.socket) + added
	if err := os.WriteFile(k.file("kubelet.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	err := s.serve(k, "kubelet", none, "--config", k.file("kubelet.yaml"), "--kubeconfig", k.file("node.kubeconfig"),
		"--hostname-override", k.node, "--node-ip", nodeAddress)
	if err == nil {
		err = s.nodeReady(k, k.node)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, s.log("kubelet"))
	}
	return err
}
