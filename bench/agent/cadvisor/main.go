// Command cadvisor runs cAdvisor's library as cAdvisor itself does: raw cgroups below one prefix, and one
// housekeeping per second. It does not back off for idle cgroups and has no jitter, so that the rate is
// exact. It collects the Prometheus metrics every 15 seconds. It is one variant of the benchmark beside it,
// and a program of its own so that neither's memory counts as the other's. It ends when stdin does.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/cadvisor/lib/cache/memory"
	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/manager"
	"github.com/google/cadvisor/lib/metrics"
	info "github.com/google/cadvisor/lib/model"
	"github.com/google/cadvisor/lib/utils/sysfs"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// offByDefault are the groups that the cAdvisor program leaves out by default.
var offByDefault = []container.MetricKind{
	container.MemoryNumaMetrics, container.NetworkTcpUsageMetrics, container.NetworkUdpUsageMetrics,
	container.NetworkAdvancedTcpUsageMetrics, container.ProcessSchedulerMetrics, container.ProcessMetrics,
	container.HugetlbUsageMetrics, container.ReferencedMemoryMetrics, container.CPUTopologyMetrics,
	container.ResctrlMetrics, container.CPUSetMetrics,
}

func main() {
	prefix := flag.String("prefix", "", "cgroup below which to look")
	onlyCPU := flag.Bool("only-cpu", false, "collect the cpu group only")
	flag.Parse()
	// Without this the library waits between one and two seconds from one housekeeping to the next.
	if err := flag.Set("jitter_factor", "0"); err != nil {
		fmt.Fprintln(os.Stderr, "cadvisor:", err)
		os.Exit(1)
	}
	if err := run(*prefix, *onlyCPU); err != nil {
		fmt.Fprintln(os.Stderr, "cadvisor:", err)
		os.Exit(1)
	}
}

func run(prefix string, onlyCPU bool) error {
	included := container.MetricSet{container.CpuUsageMetrics: struct{}{}}
	if !onlyCPU {
		included = container.MetricSet{}
		for kind := range container.AllMetrics {
			included[kind] = struct{}{}
		}
		for _, kind := range offByDefault {
			delete(included, kind)
		}
	}
	longest, dynamic := 60*time.Second, false
	m, err := manager.New(memory.New(2*time.Minute, nil), sysfs.NewRealSysFs(),
		manager.HousekeepingConfig{Interval: &longest, AllowDynamic: &dynamic}, included, []string{prefix}, nil, "", 0)
	if err != nil {
		return err
	}
	if err := m.Start(); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewPrometheusCollector(m, nil, included, clock.RealClock{},
		info.RequestOptions{IdType: info.TypeName, Count: 1, Recursive: true}))
	go func() {
		for range time.Tick(15 * time.Second) {
			if _, err := registry.Gather(); err != nil {
				fmt.Fprintln(os.Stderr, "cadvisor: collecting:", err)
			}
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
