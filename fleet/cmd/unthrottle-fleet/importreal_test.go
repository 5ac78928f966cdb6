package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// realPrometheus is a Prometheus that keeps counters that grow by so much a second for an hour, by their series.
func realPrometheus(t *testing.T, hour time.Time, counters map[string]float64) (address string) {
	t.Helper()
	for _, name := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s: %v: apt-get install prometheus; runs in a host with it", name, err)
		}
	}
	dir := t.TempDir()
	var text strings.Builder
	for series, rate := range counters {
		for at := time.Duration(0); at <= 65*time.Minute; at += 30 * time.Second {
			value := rate * at.Seconds()
			if rate < 0 { // a gauge
				value = -rate
			}
			fmt.Fprintf(&text, "%s %g %d\n", series, value, hour.Add(at).Unix())
		}
	}
	text.WriteString("# EOF\n")
	from, config, data := filepath.Join(dir, "text"), filepath.Join(dir, "config.yml"), filepath.Join(dir, "data")
	for name, content := range map[string]string{from: text.String(), config: "scrape_configs: []\n"} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", from, data).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	l.Close()
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+data,
		"--storage.tsdb.retention.time=100y", "--web.listen-address="+listen)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		r, err := http.Get("http://" + listen + "/-/ready")
		if err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return "http://" + listen
			}
		}
		if time.Now().After(end) {
			t.Fatalf("Prometheus is not ready: %v\n%s", err, said.String())
		}
	}
}

// A real Prometheus that has each series of a kubelet twice, by two jobs, and one container's CPUs beside their total.
func TestImportOfARealPrometheus(t *testing.T) {
	hour := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	counters := map[string]float64{
		`kube_pod_container_resource_requests{namespace="shop",pod="cart-0",container="app",resource="cpu",unit="core"}`:         -1,
		`kube_pod_container_resource_requests{namespace="shop",pod="cart-0",container="app",resource="memory",unit="byte"}`:      -1e9,
		`container_cpu_usage_seconds_total{node="n1",namespace="shop",pod="idle-0",container="app",id="/b",cpu="cpu00"}`:         0.01,
		`container_cpu_usage_seconds_total{node="n1",namespace="shop",pod="idle-0",container="app",id="/b",cpu="cpu01"}`:         0.02,
		`container_cpu_usage_seconds_total{node="n1",namespace="shop",pod="cart-0",container="app",id="/a",job="a",cpu="cpu00"}`: 0.5,
	}
	for _, job := range []string{"a", "b"} {
		labels := fmt.Sprintf(`{node="n1",namespace="shop",pod="cart-0",container="app",id="/a",job=%q}`, job)
		counters[strings.Replace("container_cpu_usage_seconds_total"+labels, "}", `,cpu="total"}`, 1)] = 0.6
		counters["container_cpu_cfs_periods_total"+labels] = 10
		counters["container_cpu_cfs_throttled_periods_total"+labels] = 2
		counters["container_cpu_cfs_throttled_seconds_total"+labels] = 0.1
		counters["container_spec_cpu_quota"+labels] = -120000
		counters["container_spec_cpu_period"+labels] = -100000
		counters["container_spec_cpu_shares"+labels] = -2597
	}
	address := realPrometheus(t, hour, counters)
	rows := filepath.Join(t.TempDir(), "rows")
	call := []string{"import", address, "--out", rows, "--until", "2026-03-04T06:00:00Z", "--for", "1h", "--cluster", "eu1"}
	if out, err := called(t, call...); err != nil || !strings.Contains(out, "24 rows") {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := called(t, "report", rows, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	services, _ := validated(t, "fleet_report", out)["services"].([]any)
	used := map[any]float64{}
	for _, s := range services {
		service, _ := s.(map[string]any)
		used[service["name"]], _ = service["used_cpus"].(float64)
	}
	near := func(name string, want float64) bool { return used[name] > 0.9*want && used[name] < 1.1*want }
	if len(used) != 2 || !near("shop/cart/app", 0.6) || !near("shop/idle/app", 0.03) {
		t.Errorf("%v\n%s", used, out)
	}
}
