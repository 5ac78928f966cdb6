package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// busy is work that spends any limit; idle is none.
var (
	busy = []string{"sh", "-c", loop}
	idle = []string{"sleep", "1000000"}
)

// docker is a dockerd of our own.
type docker struct {
	server *exec.Cmd
	env    []string // leads Docker's client, and unthrottle, to it
	socket string
	// cart1 and cart2 are of one compose service; hostile has labels that lie; apart has a parent cgroup of its own.
	cart1, cart2, hostile, apart string
}

// wickedService is a label that would clear the screen and turn the writing direction.
const wickedService = "\x1b[2J\u202e$(reboot)\n"

func (s *suite) startDocker() *docker {
	if s.has("dockerd", "docker", "containerd") != nil {
		return nil
	}
	dir := filepath.Join(s.dir, "d")
	d := &docker{socket: filepath.Join(dir, "docker.sock")}
	d.env = []string{"DOCKER_HOST=unix://" + d.socket, "DOCKER_CONFIG=" + filepath.Join(dir, "config")}
	s.stops = append(s.stops, func() { s.stopDocker(d) })
	err := s.serveDocker(d)
	version, _ := s.ask(d.env, "docker", "version", "--format", "{{.Server.Version}}")
	if s.check("docker: dockerd "+version+" runs, data and state in folders of its own", err) != nil {
		return nil
	}
	if s.check("docker: containers with limits", s.runDocker(d)) != nil {
		return nil
	}
	return d
}

func (s *suite) serveDocker(d *docker) (err error) {
	dir := filepath.Dir(d.socket)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	d.server, err = s.server("dockerd", nil, func() error {
		_, err := s.run(nil, d.env, "docker", "version")
		return err
	}, "dockerd", "--bridge=none", "--iptables=false", "--ip6tables=false", "--storage-driver=vfs", "--live-restore",
		"--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"), "-p",
		filepath.Join(dir, "pid"), "-H", "unix://"+d.socket)
	return err
}

func (s *suite) runDocker(d *docker) error {
	image, err := os.Open(s.rootfs())
	if err != nil {
		return err
	}
	defer image.Close()
	if _, err := s.run(image, d.env, "docker", "import", "-", imageName); err != nil {
		return err
	}
	label := func(key, value string) string { return "--label=com.docker.compose." + key + "=" + value }
	for _, c := range []struct {
		id   *string
		args []string
	}{
		// Weight and little limit let it reach the limit on a busy host.
		{&d.cart1, append([]string{"--name=shop-cart-1", "--cpus=0.1", "--cpu-shares=8192", label("project", "shop"),
			label("service", "cart"), imageName}, busy...)},
		{&d.cart2, append([]string{"--name=shop-cart-2", "--cpus=0.1", label("project", "shop"),
			label("service", "cart"), imageName}, idle...)},
		{&d.hostile, append([]string{"--name=hostile", "--cpus=0.1", label("service", wickedService),
			label("project", strings.Repeat("x", 1<<15)),
			"--label=io.kubernetes.pod.name=etcd", "--label=io.kubernetes.pod.namespace=kube-system",
			"--label=io.kubernetes.container.name=etcd", imageName}, idle...)},
		{&d.apart, append([]string{"--name=apart", "--cpus=0.1", "--cgroup-parent=" + ownCgroup, imageName}, idle...)},
	} {
		if *c.id, err = s.ask(d.env, "docker", append([]string{"run", "-d", "--network=none"}, c.args...)...); err != nil {
			return err
		}
	}
	return nil
}

// names are what the containers must be called.
func (d *docker) names() map[string]want {
	wantOf := func(name, project, service string) want {
		return want{name: name, container: name, image: imageName, runtime: "docker", scope: "own", project: project, service: service}
	}
	return map[string]want{
		"/docker/" + d.cart1:      wantOf("shop-cart-1", "shop", "cart"),
		"/docker/" + d.cart2:      wantOf("shop-cart-2", "shop", "cart"),
		"/docker/" + d.hostile:    wantOf("hostile", strings.Repeat("x", 255)+"…", `\x1b[2J\u202e$(reboot)\n`),
		ownCgroup + "/" + d.apart: wantOf("apart", "", ""),
	}
}

// namesBy checks all names; warns is a part of what must be told on standard error, "" for nothing.
func (s *suite) namesBy(d *docker, warns string, env ...string) error {
	all, told, err := s.ls(env...)
	if err != nil {
		return err
	}
	err = named(all, d.names())
	if warns == "" && told != "" || !strings.Contains(told, warns) {
		err = errors.Join(err, fmt.Errorf("standard error has %q, want %q", told, warns))
	}
	return err
}

func (s *suite) dockerNames(d *docker) {
	s.check("docker: names, images and compose services, asked by its socket", s.namesBy(d, "", d.env...))
	s.check("docker: the same from its files alone, wherever they are", s.namesBy(d, ""))
	wide, err := s.run(nil, append(d.env, "COLUMNS=1000"), s.exe, "ls", "-o", "wide", "--for", "100ms", "--below", "/docker")
	for _, bad := range []string{"\x1b", "\u202e"} {
		if strings.Contains(wide.out, bad) {
			err = errors.Join(err, fmt.Errorf("ls writes %q", bad))
		}
	}
	if lines := strings.Count(wide.out, " docker "); err == nil && lines != 3 {
		err = fmt.Errorf("%d lines for 3 containers", lines)
	}
	s.check("docker: labels that clear the screen are escaped and cut, one line each; a pod's name in a label is not believed", err)
	s.check("docker: TARGET as name, docker:NAME, id, unique prefix, path; a service of two is ambiguous",
		s.resolves(d.env, map[string]string{
			"shop-cart-1": "/docker/" + d.cart1, "docker:shop-cart-2": "/docker/" + d.cart2, d.hostile: "/docker/" + d.hostile,
			d.cart1[:12]: "/docker/" + d.cart1, "docker:" + d.apart[:12]: ownCgroup + "/" + d.apart, "/docker/" +
				d.cart1: "/docker/" + d.cart1,
			"cart": "", "shop/cart": "", "docker:nothing": "", "lxc:shop-cart-1": "",
		}))
	explained, err := s.run(nil, d.env, s.exe, "explain", "docker:shop-cart-1", "--for", "1s")
	if !strings.HasPrefix(explained.out, "shop-cart-1: ") {
		err = errors.Join(err, fmt.Errorf("explain begins with %.60q", explained.out))
	}
	s.check("docker: explain names it", err)
	s.check("docker: top shows it", s.top(d))
}

// top looks at the live view through a pseudo-terminal of 80 columns until the name is there, then leaves it.
func (s *suite) top(d *docker) error {
	cmd := exec.Command("script", "-qec", "stty cols 80 rows 24; exec "+s.exe+" top --below /docker", "/dev/null")
	cmd.Env = append(append(os.Environ(), d.env...), "TERM=xterm")
	keys, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	screen, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var seen []byte
	for piece := make([]byte, 4096); !bytes.Contains(seen, []byte("shop-cart-1")); {
		n, err := screen.Read(piece)
		if seen = append(seen, piece[:n]...); err != nil {
			_ = cmd.Wait()
			return fmt.Errorf("no shop-cart-1 in %d bytes of screen within a minute", len(seen))
		}
	}
	_, err = io.WriteString(keys, "q")
	_, drained := io.Copy(io.Discard, screen)
	return errors.Join(err, drained, cmd.Wait())
}

// dockerGone stops Docker in three ways while its containers run.
func (s *suite) dockerGone(d *docker) {
	err := d.server.Process.Signal(syscall.SIGSTOP)
	s.check("docker: while dockerd hangs, names come from its files, and a warning says so",
		errors.Join(err, s.namesBy(d, "did not answer at "+d.socket, d.env...)))
	_ = d.server.Process.Signal(syscall.SIGCONT)
	end(d.server)
	s.check("docker: while dockerd is stopped, names come from its files", s.namesBy(d, "", d.env...))
	s.check("docker: and TARGET takes them",
		s.resolves(d.env, map[string]string{"docker:shop-cart-1": "/docker/" + d.cart1, "apart": ownCgroup + "/" + d.apart}))
	s.check("docker: dockerd starts again", s.serveDocker(d))
	s.check("docker: and has its names", s.namesBy(d, "", d.env...))
}

func (s *suite) stopDocker(d *docker) {
	if d.server != nil && d.server.ProcessState != nil { // it was stopped by a check: what runs must be stopped by it
		_ = s.serveDocker(d)
	}
	for _, id := range []string{d.cart1, d.cart2, d.hostile, d.apart} {
		if id != "" {
			_, _ = s.run(nil, d.env, "docker", "rm", "-f", id)
		}
	}
	end(d.server)
	_ = syscall.Unmount(filepath.Join(filepath.Dir(d.socket), "data"), 0) // what --live-restore keeps
}
