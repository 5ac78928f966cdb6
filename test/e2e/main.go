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
	prometheus := flag.String("prometheus", "", "the folder of a Prometheus (make e2e-prometheus builds it)")
	kubernetes := flag.String("kubernetes", "", "the folder of Kubernetes and its etcd (make e2e-kubernetes builds it)")
	cni := flag.String("cni", "", "the folder of network plugins (make e2e-node builds it)")
	only := flag.String("only", "docker,podman,containerd,nri,chart",
		"which of these run, and prometheus, kubernetes and, in a machine of its own, systemd, hard and node")
	serve := flag.String("serve", "", "be the service that pods run, at this address")
	var o chartOptions
	o.flags()
	flag.Parse()
	if *serve != "" {
		fmt.Fprintln(os.Stderr, "e2e:", serveRequests(*serve))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed, err := run(ctx, programs{*exe, *crictl, *bin, *prometheus, *kubernetes, *cni}, strings.Split(*only, ","), o, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// programs are where the programs are that the checks run; all but the first two are folders.
type programs struct{ exe, crictl, containerd, prometheus, kubernetes, cni string }

// run runs all checks and returns how many failed.
func run(ctx context.Context, where programs, only []string, o chartOptions, out io.Writer) (failed int, err error) {
	if os.Geteuid() != 0 {
		return 0, fmt.Errorf("container runtimes need root: sudo make e2e")
	}
	dir, err := os.MkdirTemp("", "e2e-") // short: a socket's path has 108 bytes at most
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	for _, path := range []*string{&where.exe, &where.crictl, &where.containerd, &where.prometheus, &where.kubernetes, &where.cni} {
		if *path, err = filepath.Abs(*path); err != nil {
			return 0, err
		}
	}
	s := &suite{ctx: ctx, out: out, dir: dir, exe: where.exe, crictl: where.crictl}
	if slices.ContainsFunc(only, func(name string) bool { return name == "node" || name == "systemd" || name == "hard" }) {
		s.onNode(where, only, o)
		fmt.Fprintf(out, "%d passed, %d failed\n", s.passed, s.failed)
		return s.failed, nil
	}
	before := look()
	o.prometheus = where.prometheus
	if slices.Contains(only, "prometheus") {
		s.prometheus(where.prometheus)
	}
	if slices.Contains(only, "kubernetes") {
		s.onCluster(where, o)
	}
	if slices.ContainsFunc(only, func(name string) bool { return name != "prometheus" && name != "kubernetes" }) {
		s.all(where.containerd, only, o)
	}
	s.stopAll()
	before.tidy()
	s.nothingLeft(before)
	s.sweep()
	fmt.Fprintf(out, "%d passed, %d failed\n", s.passed, s.failed)
	return s.failed, nil
}

// all runs the checks of each runtime that is asked for, then those with all of them at once.
func (s *suite) all(bin string, only []string, o chartOptions) {
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
	if asked("nri") || asked("chart") {
		n = s.startContainerd(pinned(bin))
	}
	if d != nil {
		s.dockerNames(d)
		s.fleet(d)
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
	if n != nil && asked("nri") {
		s.nri(n)
	}
	if n != nil && asked("chart") {
		s.chartRendered(o)
		s.chartPods(n, o)
	}
	if d != nil && p != nil && c != nil && n != nil {
		s.together()
	}
	if d != nil {
		s.dockerGone(d)
	}
}

// onCluster runs the checks with Kubernetes. They are alone with their containerd.
func (s *suite) onCluster(where programs, o chartOptions) {
	if helm, err := filepath.Abs(o.helm); err != nil || s.has("busybox", "runc", helm) != nil ||
		s.check("an image", s.makeImages()) != nil {
		return
	}
	if k := s.startCluster(where.kubernetes, where.containerd); k != nil {
		s.kubernetes(k, o)
	}
}
