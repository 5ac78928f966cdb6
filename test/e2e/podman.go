package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// podman is Podman with folders of its own.
type podman struct {
	args    []string
	env     []string
	server  *exec.Cmd
	service []string // leads unthrottle to the socket
	mail    string
}

func (p *podman) path() string { return "/libpod_parent/libpod-" + p.mail }

func (s *suite) startPodman() *podman {
	if s.has("podman", "conmon") != nil {
		return nil
	}
	dir := filepath.Join(s.dir, "p")
	config := filepath.Join(dir, "containers.conf")
	p := &podman{env: []string{"CONTAINERS_CONF=" + config},
		args: []string{"--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"),
			"--tmpdir", filepath.Join(dir, "tmp"), "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs",
			"--events-backend", "file", "--runtime", "runc", "--network-config-dir", filepath.Join(dir, "networks")}}
	s.stops = append(s.stops, func() { s.stopPodman(p) })
	err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(config, []byte("[engine]\n"), 0o600))
	if err == nil {
		var image *os.File
		if image, err = os.Open(s.rootfs()); err == nil {
			_, err = s.run(image, p.env, "podman", append(p.args, "import", "-", imageName)...)
			image.Close()
		}
	}
	if err == nil {
		p.mail, err = s.ask(p.env, "podman",
			append(append(p.args, "run", "-d", "--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024",
				"--name=mail", "--cpus=0.1", "--label=com.docker.compose.project=shop",
				"--label=com.docker.compose.service=post", imageName), idle...)...)
	}
	version, _ := s.ask(p.env, "podman", "--version")
	if s.check("podman: a container with a limit ("+version+")", err) != nil {
		return nil
	}
	return p
}

func (s *suite) podmanNames(p *podman) {
	w := want{name: "mail", container: "mail", image: imageName, runtime: "podman", scope: "own"}
	all, told, err := s.ls()
	s.check("podman: name and image from its files, with no service running",
		errors.Join(err, silent(told), named(all, map[string]want{p.path(): w})))

	socket := filepath.Join(s.dir, "p", "podman.sock")
	p.service = []string{"CONTAINER_HOST=unix://" + socket}
	p.server, err = s.server("podman", p.env, func() error { _, err := os.Stat(socket); return err },
		append([]string{"podman"}, append(p.args, "system", "service", "-t", "0", "unix://"+socket)...)...)
	if err == nil {
		all, told, err = s.ls(p.service...)
	}
	w.project, w.service = "shop", "post"
	s.check("podman: its compose service too, asked by its socket",
		errors.Join(err, silent(told), named(all, map[string]want{p.path(): w})))
	s.check("podman: TARGET as podman:NAME, name, unique prefix", s.resolves(nil, map[string]string{
		"podman:mail": p.path(), "mail": p.path(), p.mail[:12]: p.path(), "docker:mail": ""}))
}

// silent expects that nothing was told.
func silent(told string) error {
	if told = strings.TrimSpace(told); told != "" {
		return fmt.Errorf("standard error has %q", told)
	}
	return nil
}

func (s *suite) stopPodman(p *podman) {
	end(p.server)
	if p.mail != "" {
		_, _ = s.run(nil, p.env, "podman", append(p.args, "rm", "-f", "-t", "0", "mail")...)
	}
}
