package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	exe := flag.String("exe", "bin/unthrottle", "the program to run")
	crictl := flag.String("crictl", "bin/crictl", "the client of Kubernetes' runtime interface")
	bin := flag.String("containerd", "", "the folder of a containerd 2 with its shim and ctr (make e2e builds it)")
	only := flag.String("only", "docker,podman,containerd,nri", "which of these run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed, err := run(ctx, *exe, *crictl, *bin, strings.Split(*only, ","), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// run runs all checks and returns how many failed.
func run(ctx context.Context, exe, crictl, bin string, only []string, out io.Writer) (failed int, err error) {
	if os.Geteuid() != 0 {
		return 0, fmt.Errorf("container runtimes need root: sudo make e2e")
	}
	dir, err := os.MkdirTemp("", "e2e-") // short: a socket's path has 108 bytes at most
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	s := &suite{ctx: ctx, out: out, dir: dir}
	if s.exe, err = filepath.Abs(exe); err != nil {
		return 0, err
	}
	if s.crictl, err = filepath.Abs(crictl); err != nil {
		return 0, err
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return 0, err
	}
	before := look()
	s.all(bin, only)
	s.stopAll()
	before.tidy()
	s.nothingLeft(before)
	s.sweep()
	fmt.Fprintf(out, "%d passed, %d failed\n", s.passed, s.failed)
	return s.failed, nil
}

// all runs the checks of each runtime that is asked for, then those with all of them at once.
func (s *suite) all(bin string, only []string) {
	if s.has("busybox", "runc") != nil || s.check("an image", s.makeImages()) != nil {
		return
	}
	asked := func(name string) bool { return slices.Contains(only, name) }
	var d *docker
	var p *podman
	var c, n *containerd
	if asked("docker") {
		d = s.startDocker()
	}
	if asked("podman") {
		p = s.startPodman()
	}
	if asked("containerd") {
		c = s.startContainerd(installed())
	}
	if asked("nri") {
		n = s.startContainerd(pinned(bin))
	}
	if d != nil {
		s.dockerNames(d)
		s.cure(d)
	}
	if p != nil {
		s.podmanNames(p)
	}
	for _, c := range []*containerd{c, n} {
		if c != nil {
			s.containerdNames(c)
		}
	}
	if n != nil {
		s.nri(n)
	}
	if d != nil && p != nil && c != nil && n != nil {
		s.together()
	}
	if d != nil {
		s.dockerGone(d)
	}
}
