package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The second node's name is its address for the API server, as that of the first one is. Its pods' cgroups are below its own.
const (
	secondName   = "127.0.0.2"
	secondCgroup = "/e2e-second"
)

// Folders that runtimes and kubelets have wherever their data is.
const (
	runtimeDir = "/run/containerd"
	kubeletDir = "/var/lib/kubelet"
)

// second is another node on this machine: a kubelet and a containerd in namespaces of mounts, of the network and of cgroups, so that
// its pods and its agent meet nothing of the first node's. Processes are the host's, as agents want them.
type second struct {
	worker
	k *cluster
	// images are those of the chart, as layouts.
	images []string
	// net is its network, which has a loopback alone. It outlives a reset, as a network card does.
	net *os.File
	// holder holds the other namespaces.
	holder, server *exec.Cmd
}

// joinSecond starts it. What it starts is stopped by stopAll.
func (s *suite) joinSecond(k *cluster, images ...string) (*second, error) {
	e := pinned(k.containerd.bin)
	e.title, e.folder = "containerd of the second node", "n2"
	n := &second{k: k, images: images, worker: worker{containerd: s.ownContainerd(e), name: secondName, user: "second",
		kubelet: "kubelet-2", dir: filepath.Join(s.dir, "k2"), port: freePort()}}
	var err error
	if n.net, err = newNetwork(); err != nil {
		return n, err
	}
	s.stops = append(s.stops, func() { s.stopSecond(n) })
	if err := errors.Join(
		// Its pods and its kubelet ask the API server, and that asks its kubelet.
		s.forwardBetween(n.net, serviceAddress, nil, k.api), s.forwardBetween(n.net, k.api, nil, k.api),
		s.forwardBetween(nil, secondName+":"+n.port, n.net, "127.0.0.1:"+n.port)); err != nil {
		return n, err
	}
	return n, s.bootSecond(n)
}

// bootSecond starts what runs on the node.
func (s *suite) bootSecond(n *second) error {
	err := errors.Join(makeCgroup(secondCgroup), makeCgroup(secondCgroup+ownCgroup))
	if err == nil {
		err = s.holdSecond(n)
	}
	if err == nil {
		err = s.configureContainerd(n.containerd)
	}
	for _, layout := range append([]string{s.layout()}, n.images...) {
		if err == nil {
			err = s.importImage(n.containerd, "k8s.io", layout)
		}
	}
	if err == nil {
		n.server, err = s.runKubelet(n.k, n.worker)
	}
	return err
}

// enterCgroup is a shell's line that moves it into the node's cgroup of each hierarchy.
const enterCgroup = `for dir in /sys/fs/cgroup/*/ /sys/fs/cgroup/; do
  if [ -e "$dir` + secondCgroup + `/cgroup.procs" ]; then echo $$ >"$dir` + secondCgroup + `/cgroup.procs"; fi
done
`

// holdSecond makes the namespaces: cgroups are mounted anew, so that the node's own is their root, and folders of the host that the
// chart names are the node's own.
func (s *suite) holdSecond(n *second) error {
	ready := n.file("ready")
	// What is in run is the runtime's memory.
	err := errors.Join(os.RemoveAll(ready), os.RemoveAll(n.file("run")))
	for _, dir := range []string{n.file("run"), n.file("lib"), n.file("state"), n.nri, n.k.file("state"), runtimeDir, kubeletDir} {
		err = errors.Join(err, os.MkdirAll(dir, 0o700))
	}
	if err != nil {
		return err
	}
	inside := fmt.Sprintf(`set -e
mount --make-rshared /
grep -E '^[^ ]+ [^ ]+ cgroup2? ' /proc/mounts >%[1]q
while read -r _ where kind options _; do
  umount "$where"
  mount -t "$kind" -o "$options" none "$where"
done <%[1]q
mount --bind %[2]q %[3]q
mount --bind %[4]q %[5]q
mount --bind %[7]q %[8]q
mount --bind %[9]q %[10]q
touch %[6]q
exec sleep infinity
`, n.file("mounts"), n.file("state"), n.k.file("state"), n.nri, n.k.nri, ready,
		n.file("run"), runtimeDir, n.file("lib"), kubeletDir)
	hold := fmt.Sprintf("set -e\n%sexec nsenter --net=/proc/%d/fd/%d unshare --mount --cgroup --propagation slave sh %q\n",
		enterCgroup, os.Getpid(), n.net.Fd(), n.file("inside"))
	if err := errors.Join(os.WriteFile(n.file("inside"), []byte(inside), 0o600),
		os.WriteFile(n.file("hold"), []byte(hold), 0o600)); err != nil {
		return err
	}
	n.holder, err = s.server("second-node", nil, func() error { _, err := os.Stat(ready); return err }, "sh", n.file("hold"))
	if err != nil {
		return err
	}
	enter := fmt.Sprintf("set -e\n%sexec nsenter --target %d --mount --net --cgroup -- \"$@\"\n", enterCgroup, n.holder.Process.Pid)
	n.into = []string{"sh", n.file("enter")}
	return os.WriteFile(n.file("enter"), []byte(enter), 0o600)
}

// resetSecond ends the node as a lost power supply does: all its processes at once, and with them its mounts and cgroups and what its
// runtime keeps in memory. Then it starts anew. The boot id stays the host's.
func (s *suite) resetSecond(n *second) error {
	if err := n.kill(); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(n.containerd.dir, "state")); err != nil {
		return err
	}
	return s.bootSecond(n)
}

// kill kills all processes of the node, and removes its cgroups.
func (n *second) kill() error {
	err := eventually(func() error {
		left := 0
		for _, root := range n.cgroups() {
			_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
				if err != nil || !entry.IsDir() {
					return nil
				}
				text, _ := os.ReadFile(filepath.Join(name, "cgroup.procs"))
				for field := range strings.FieldsSeq(string(text)) {
					if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
						left++
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
				}
				return nil
			})
			if left == 0 {
				remove(root)
			}
		}
		if all := n.cgroups(); len(all) > 0 {
			return fmt.Errorf("%d processes, and the cgroups %v", left, all)
		}
		return nil
	})
	for _, cmd := range []*exec.Cmd{n.server, n.containerd.server, n.holder} {
		end(cmd) // it has ended
	}
	return err
}

// cgroups are the node's, in each hierarchy.
func (n *second) cgroups() []string {
	all, _ := filepath.Glob("/sys/fs/cgroup/*" + secondCgroup)
	if _, err := os.Stat("/sys/fs/cgroup" + secondCgroup); err == nil {
		all = append(all, "/sys/fs/cgroup"+secondCgroup)
	}
	return all
}

// stopSecond ends the node.
func (s *suite) stopSecond(n *second) {
	end(n.server)
	_, _ = s.cri(n.containerd, "rmp", "-f", "-a")
	s.check("left: no process and no cgroup of the second node", n.kill())
	_ = n.net.Close()
}

// hostCgroup is where a cgroup of a node is on this host.
func hostCgroup(node, path string) string {
	if node == secondName {
		return secondCgroup + path
	}
	return path
}

// newNetwork makes a network namespace with a loopback.
func newNetwork() (net *os.File, err error) {
	err = apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("a network namespace: %w", err)
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		loopback, err := unix.NewIfreq("lo")
		if err != nil {
			return err
		}
		loopback.SetUint16(unix.IFF_UP)
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, loopback); err != nil {
			return fmt.Errorf("its loopback: %w", err)
		}
		net, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return net, err
}

// inNetwork does something in a network; nil is this program's.
func inNetwork(net *os.File, do func() error) error {
	if net == nil {
		return do()
	}
	return apart(func() error {
		if err := unix.Setns(int(net.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return do()
	})
}

// apart does something in a thread that ends with it, so that its namespaces are nobody else's.
func apart(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and no unlock
		done <- do()
	}()
	return <-done
}

// pageNodes is the node of each page's pod.
func (s *suite) pageNodes(p *pages) (map[string]string, error) {
	text, err := s.kubectl(p.k, "get", "pods", "-n", pageNamespace, "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{"\n"}{end}`)
	nodes := map[string]string{}
	for line := range strings.Lines(text) {
		name, node, _ := strings.Cut(strings.TrimSpace(line), " ")
		nodes[name] = node
	}
	return nodes, err
}

// reachSecond forwards what is for pods of the second node, and has its pods reach the Prometheus.
func (s *suite) reachSecond(p *pages) error {
	nodes, err := s.pageNodes(p)
	if err != nil {
		return err
	}
	count := 0
	for i, name := range pageNames() {
		if nodes[name] != secondName {
			continue
		}
		count++
		at := fmt.Sprintf("127.0.0.1:%d", p.first+i)
		err = errors.Join(err, s.forwardBetween(nil, at, p.second.net, at))
	}
	api, bad := url.Parse(p.api)
	if bad == nil {
		bad = s.forwardBetween(p.second.net, api.Host, nil, api.Host)
	}
	return errors.Join(err, bad, equal("pods on the second node", strconv.Itoa(count), strconv.Itoa(pagePods/2)))
}

// rolloutOnTwo has a remedy rolled out over pods of two nodes, of which one is reset meanwhile. What is in force in the end is undone by
// helm uninstall.
func (s *suite) rolloutOnTwo(k *cluster, c *cart, o chartOptions) {
	n, err := s.joinSecond(k, o.image, o.sidecar)
	if err == nil {
		err = s.rolledOut(k)
	}
	if s.check("nodes: a second node joins, and the chart's agent is ready on both", err) != nil {
		return
	}
	s.overPages(&pages{k: k, second: n}, o, func(p *pages, stop func()) {
		nodes, err := s.pageNodes(p)
		s.check("nodes: the second node's agent lists the pods of its node, and no other's", errors.Join(err, s.agentsList(k, nodes)))
		s.watchPages(p, func() {
			err := s.resetSecond(n)
			if err == nil {
				err = s.rolledOut(k)
			}
			if err == nil {
				_, err = s.kubectl(k, "rollout", "status", "-n", pageNamespace, "statefulset/page", s.timeout())
			}
			for i := range pageNames() {
				err = errors.Join(err, eventually(func() error { return get(p.url(i), nil) }))
			}
			// The API server may still have the conditions from before: the node's new agent is asked.
			err = errors.Join(err, eventually(func() error { return s.agentsList(k, nodes) }))
			s.check("nodes: the second node is reset; its pods answer again", err)
		})
		treated := map[string]int{}
		for name := range strings.FieldsSeq(s.treatedPages(p)) {
			treated[nodes[name]]++
		}
		err = nil
		if treated[k.node] == 0 || treated[secondName] == 0 {
			err = fmt.Errorf("pods with a remedy by node: %v", treated)
		}
		s.check(fmt.Sprintf("nodes: it is in force on both (%d and %d pods)", treated[k.node], treated[secondName]), err)
		stop()
		first := slices.DeleteFunc(pageNames(), func(name string) bool { return nodes[name] == secondName })
		s.check(fmt.Sprintf("nodes: of %d requests, all to pods of the first node were answered", len(p.asked)), p.failures(first))
		err = s.uninstall(k, o)
		s.check("nodes: helm uninstall undoes it on both", errors.Join(err, equal("pods with a remedy", s.treatedPages(p), "")))
		s.check("nodes: helm installs the chart again", s.install(k, c, o))
	})
}

// agentsList compares the pages that the agent of each node lists with those that run there. The first node is this host, which has the
// second one's cgroups too.
func (s *suite) agentsList(k *cluster, nodes map[string]string) error {
	agents, err := s.kubectl(k, "get", "pods", "-n", "unthrottle", "-l", "app.kubernetes.io/name=unthrottle", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{"\n"}{end}`)
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(agents) {
		agent, node, _ := strings.Cut(strings.TrimSpace(line), " ")
		got, err := s.run(nil, []string{"KUBECONFIG=" + k.config}, k.program("kubectl"), "exec", "-n", "unthrottle", agent, "-c", "agent",
			"--", "unthrottle", "ls", "-o", "json", "--for", "500ms")
		var all struct{ Containers []listed }
		if err == nil {
			err = json.Unmarshal([]byte(got.out), &all)
		}
		var lists, runs []string
		for _, l := range all.Containers {
			if value(l.Namespace) == pageNamespace {
				lists = append(lists, value(l.Pod))
			}
		}
		for name, at := range nodes {
			if at == node || node == k.node {
				runs = append(runs, name)
			}
		}
		slices.Sort(lists)
		lists = slices.Compact(lists) // a pod's sandbox is a container too
		slices.Sort(runs)
		errs = append(errs, err, equal("pods on "+node, strings.Join(lists, " "), strings.Join(runs, " ")))
	}
	return errors.Join(errs...)
}
