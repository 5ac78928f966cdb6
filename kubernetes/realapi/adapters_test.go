package realapi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

// adapterBinaries is the variable that names the folder with Prometheus, its adapter, KEDA's programs and KEDA's definitions.
const adapterBinaries = "UNTHROTTLE_ADAPTERS_BIN"

// scrapeEvery is how often the test's Prometheus looks.
const scrapeEvery = time.Second

// counter is a series of an agent that grows evenly.
type counter struct {
	instance, name, labels string // labels are as in {}
	perSecond              float64
}

// sample is a line of Prometheus' format: what has been counted in so much time. more are further labels.
func (c counter) sample(within time.Duration, more string) string {
	return fmt.Sprintf("%s{%s%s} %f", c.name, c.labels, more, c.perSecond*within.Seconds())
}

// agentsMetrics stands for the agents, which began at a time: http://HOST/INSTANCE has an instance's counters.
func agentsMetrics(t *testing.T, counters func() []counter, began time.Time) (host string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, c := range counters() {
			if "/"+c.instance == r.URL.Path {
				fmt.Fprintln(w, c.sample(time.Since(began), ""))
			}
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// startPrometheus starts a Prometheus with this project's rules, and returns its address. Its rates are of five minutes, so it
// begins with ten minutes of each counter that is there. An instance that comes later is not scraped.
func (s *server) startPrometheus(bin string, counters func() []counter) string {
	s.t.Helper()
	began := time.Now().Add(-10 * time.Minute)
	rules, err := filepath.Abs(filepath.Join("..", "..", "packaging", "mixin", "rules.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	var past, config strings.Builder
	fmt.Fprintf(&config, `global: {scrape_interval: %[1]v, evaluation_interval: %[1]v}
rule_files: [%[2]q]
scrape_configs:
- job_name: unthrottle
  fallback_scrape_protocol: PrometheusText0.0.4
  static_configs:
`, scrapeEvery, rules)
	host, name, instances := agentsMetrics(s.t, counters, began), "", map[string]bool{}
	byName := func(a, b counter) int { return strings.Compare(a.name, b.name) } // as the format wants them
	for _, c := range slices.SortedStableFunc(slices.Values(counters()), byName) {
		if !instances[c.instance] {
			instances[c.instance] = true
			fmt.Fprintf(&config, "  - {targets: [%q], labels: {instance: %[2]s, __metrics_path__: /%[2]s}}\n", host, c.instance)
		}
		if c.name != name {
			name = c.name
			fmt.Fprintf(&past, "# TYPE %s counter\n", strings.TrimSuffix(name, "_total"))
		}
		for at := began; at.Before(time.Now()); at = at.Add(15 * time.Second) {
			fmt.Fprintf(&past, "%s %d\n", c.sample(at.Sub(began), fmt.Sprintf(`,job="unthrottle",instance=%q`, c.instance)), at.Unix())
		}
	}
	past.WriteString("# EOF\n")
	s.Write("past", past.String())
	s.Write("prometheus.yaml", config.String())
	if out, err := exec.Command(filepath.Join(bin, "promtool"), "tsdb", "create-blocks-from", "openmetrics", s.File("past"),
		s.File("tsdb")).CombinedOutput(); err != nil {
		s.t.Fatalf("promtool: %v: %s", err, out)
	}
	return s.runPrometheus(bin)
}

// runPrometheus starts a Prometheus with the test's file prometheus.yaml, and returns its address.
func (s *server) runPrometheus(bin string) string {
	s.t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", apiserver.FreePorts(s.t, 1)[0])
	p := apiserver.Start(s.t, s.Dir, "prometheus", exec.Command(filepath.Join(bin, "prometheus"),
		"--config.file="+s.File("prometheus.yaml"),
		"--storage.tsdb.path="+s.File("tsdb"), "--web.listen-address="+address))
	wait.Until(s.t, "Prometheus is ready", func() bool {
		answer, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}, p.Printed)
	return "http://" + address
}

// startAdapter starts the Prometheus adapter with a configuration, and returns its port.
func (s *server) startAdapter(bin, prometheus, config string) (port int, p *apiserver.Process) {
	s.t.Helper()
	s.Write("adapter.yaml", config)
	port = apiserver.FreePorts(s.t, 1)[0]
	return port, apiserver.Start(s.t, s.Dir, "adapter", exec.Command(filepath.Join(bin, "adapter"), append(s.served(port),
		"--config="+s.File("adapter.yaml"), "--prometheus-url="+prometheus, "--metrics-relist-interval="+scrapeEvery.String())...))
}

// startKEDA starts KEDA's operator and its adapter, and returns the adapter's port.
func (s *server) startKEDA(bin string) (port int, operator, adapter *apiserver.Process) {
	s.t.Helper()
	definitions, err := filepath.Glob(filepath.Join(bin, "crd", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		s.t.Fatalf("no definitions of KEDA in %s: %v", bin, err)
	}
	for _, name := range definitions {
		text, err := os.ReadFile(name)
		if err != nil {
			s.t.Fatal(err)
		}
		s.makes(name, docs(s.t, text))
	}
	environment := append(os.Environ(), "KUBECONFIG="+s.kubeconfig(apiserver.AdminToken), "POD_NAMESPACE=unthrottle", "WATCH_NAMESPACE=",
		"KEDA_CLUSTER_OBJECT_NAMESPACE=unthrottle")
	ports := apiserver.FreePorts(s.t, 2)
	metrics := fmt.Sprintf("127.0.0.1:%d", ports[0])
	run := exec.Command(filepath.Join(bin, "keda-operator"), "--cert-dir="+s.File("front"), "--metrics-service-bind-address="+metrics,
		"--enable-prometheus-metrics=false", "--health-probe-bind-address=0")
	run.Env = environment
	operator = apiserver.Start(s.t, s.Dir, "keda-operator", run)
	run = exec.Command(filepath.Join(bin, "keda-adapter"), append(s.served(ports[1]), "--cert-dir="+s.File("front"),
		"--metrics-service-address="+metrics, "--port=0")...)
	run.Env = environment
	return ports[1], operator, apiserver.Start(s.t, s.Dir, "keda-adapter", run)
}

// served are the flags of a server behind the API server.
func (s *server) served(port int) []string {
	config := s.kubeconfig(apiserver.AdminToken)
	return []string{"--secure-port=" + fmt.Sprint(port), "--bind-address=127.0.0.1", "--tls-cert-file=" + s.File("front/tls.crt"),
		"--tls-private-key-file=" + s.File("front/tls.key"), "--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config, "--lister-kubeconfig=" + config}
}

// writeFront makes the certificate by which the API server, the servers behind it and KEDA's programs know each other, in the
// folder front: tls.crt, which is its own authority, ca.crt, the same, and tls.key.
func (s *server) writeFront() {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "front"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, is, is, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.MkdirAll(s.File("front"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	s.Write("front/ca.crt", text)
	s.Write("front/tls.crt", text)
	s.Write("front/tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})))
}

// usedMetrics stands for the metrics server: it answers metrics.k8s.io with all of the limit for each pod of a Deployment, and
// returns its port.
func usedMetrics(t *testing.T, podsOf func(selector string) []string) (port int) {
	t.Helper()
	type object = map[string]any
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer object
		switch r.URL.Path {
		case "/apis/metrics.k8s.io/v1beta1":
			answer = object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1",
				"resources": []object{{"name": "pods", "singularName": "", "namespaced": true, "kind": "PodMetrics",
					"verbs": []string{"get", "list"}}}}
		case "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods":
			items := []object{}
			selector := r.URL.Query().Get("labelSelector")
			_, app, _ := strings.Cut(selector, "=")
			for _, pod := range podsOf(selector) {
				items = append(items, object{
					"metadata":   object{"namespace": "shop", "name": pod, "labels": object{"app": app}},
					"timestamp":  time.Now().UTC().Format(time.RFC3339),
					"window":     "30s",
					"containers": []object{{"name": "app", "usage": object{"cpu": limit}}},
				})
			}
			answer = object{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": object{}, "items": items}
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port
}

// behind has the API server ask the server at a port of this host for an API.
func (s *server) behind(version, group string, port int) {
	s.t.Helper()
	s.makes(group, docs(s.t, fmt.Appendf(nil, `apiVersion: v1
kind: Service
metadata: {name: metrics, namespace: shop}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: %[1]s.%[2]s}
spec: {group: %[2]s, version: %[1]s, service: {namespace: shop, name: metrics, port: %[3]d}, insecureSkipTLSVerify: true,
  groupPriorityMinimum: 100, versionPriority: 100}
`, version, group, port)))
}

// podsOf are the names of the pods in the namespace shop.
func (s *server) podsOf(selector string) (names []string) {
	list, err := s.client.CoreV1().Pods("shop").List(s.t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil // the test has ended
	}
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}
