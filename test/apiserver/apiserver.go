// Package apiserver starts etcd and a real API server of Kubernetes on this host's loopback address. The modules that test against it
// bring their own clients.
package apiserver

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/wait"
)

// Binaries is the variable that names the folder with etcd and kube-apiserver.
const Binaries = "UNTHROTTLE_KUBERNETES_BIN"

// AdminToken is of a user that may do all.
const AdminToken = "admin"

// Server is an API server with its etcd. Both end with the test.
type Server struct {
	// Dir has its files and logs, Bin the programs.
	Dir, Bin string
	// Port is the API server's.
	Port int
	// API is the API server's process, once StartAPI was called.
	API *Process

	t    testing.TB
	etcd int
}

// New starts etcd, and writes what an API server needs. The test is skipped where no programs are named; target is the make target that
// names them.
func New(t testing.TB, target string) *Server {
	t.Helper()
	bin := os.Getenv(Binaries)
	if bin == "" {
		t.Skipf("%s does not name a folder with etcd and kube-apiserver: make %s", Binaries, target)
	}
	ports := FreePorts(t, 3)
	s := &Server{Dir: t.TempDir(), Bin: bin, t: t, etcd: ports[0], Port: ports[1]}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s.Write("sa.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	s.Write("tokens.csv", AdminToken+`,admin,admin,"system:masters"`+"\n")
	peers := fmt.Sprintf("http://127.0.0.1:%d", ports[2])
	Start(t, s.Dir, "etcd", exec.Command(filepath.Join(bin, "etcd"), "--name", "e", "--data-dir", s.File("etcd"),
		"--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", s.etcdURL(), "--advertise-client-urls", s.etcdURL(), "--listen-peer-urls", peers,
		"--initial-advertise-peer-urls", peers, "--initial-cluster", "e="+peers))
	return s
}

func (s *Server) etcdURL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.etcd) }

// URL is the API server's.
func (s *Server) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", s.Port) }

// CAFile has the certificate of who signed the API server's. The API server writes it as it starts.
func (s *Server) CAFile() string { return s.File("pki/apiserver.crt") }

// File is the path of a file in the folder.
func (s *Server) File(name string) string { return filepath.Join(s.Dir, name) }

// Write writes a file of the folder.
func (s *Server) Write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.File(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// StartAPI starts the API server with more flags, again if it was killed, and waits until it is ready.
func (s *Server) StartAPI(flags ...string) {
	s.t.Helper()
	s.API = Start(s.t, s.Dir, "apiserver", exec.Command(filepath.Join(s.Bin, "kube-apiserver"), append([]string{
		"--etcd-servers", s.etcdURL(), "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(s.Port), "--cert-dir", s.File("pki"),
		"--endpoint-reconciler-type", "none", "--advertise-address", "192.0.2.1", // to no one: it need not look for a route
		"--service-cluster-ip-range", "10.96.0.0/16", "--authorization-mode", "RBAC", "--token-auth-file", s.File("tokens.csv"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", s.File("sa.key"),
		"--service-account-signing-key-file", s.File("sa.key")}, flags...)...))
	wait.Until(s.t, "the API server is ready", func() bool { return s.API.Ended() || s.ready() }, s.API.Printed)
	if s.API.Ended() {
		s.t.Fatal("the API server ended: ", s.API.Printed())
	}
}

func (s *Server) ready() bool {
	certificate, err := os.ReadFile(s.CAFile())
	if err != nil {
		return false
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool},
		DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.URL()+"/readyz", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+AdminToken)
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return err == nil && string(text) == "ok"
}

// FreePorts are ports of the loopback address that nobody listens on.
func FreePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}
