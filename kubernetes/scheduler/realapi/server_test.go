package realapi

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	authn "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// binaries is the variable that names the folder with etcd and kube-apiserver.
const binaries = "UNTHROTTLE_KUBERNETES_BIN"

// server is an API server.
type server struct {
	dir    string
	config *rest.Config
	client kubernetes.Interface
}

// start runs a program until the test ends; what it prints is in the file NAME.log of dir.
func start(t testing.TB, dir, name string, cmd *exec.Cmd) (log string, ended <-chan error) {
	t.Helper()
	log = filepath.Join(dir, name+".log")
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	gone := make(chan struct{})
	go func() { done <- cmd.Wait(); close(gone) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-gone:
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			<-gone
		}
	})
	return log, done
}

func printed(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// eventually waits until a condition holds; why says what is there instead.
func eventually(t testing.TB, what string, holds func() bool, why func() string) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("after three minutes not: %s\n%s", what, why())
}

// newServer starts etcd and an API server on loopback, with nothing in it but a namespace.
func newServer(t testing.TB) *server {
	t.Helper()
	bin := os.Getenv(binaries)
	if bin == "" {
		t.Skipf("%s does not name a folder with etcd and kube-apiserver: make e2e-scheduler", binaries)
	}
	s := &server{dir: t.TempDir()}
	var ports [3]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) string { return filepath.Join(s.dir, name) }
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"tokens.csv": []byte("admin,admin,admin,system:masters\n"),
		"sa.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})} {
		if err := os.WriteFile(file(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	etcd, peers := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	start(t, s.dir, "etcd", exec.Command(filepath.Join(bin, "etcd"), "--name", "e", "--data-dir", file("etcd"), "--unsafe-no-fsync",
		"--log-level", "warn", "--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", peers,
		"--initial-advertise-peer-urls", peers, "--initial-cluster", "e="+peers))
	log, ended := start(t, s.dir, "apiserver", exec.Command(filepath.Join(bin, "kube-apiserver"), "--etcd-servers", etcd,
		"--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(ports[2]), "--cert-dir", file("pki"),
		"--endpoint-reconciler-type", "none", "--advertise-address", "192.0.2.1", // to no one: it need not look for a route
		"--service-cluster-ip-range", "10.96.0.0/16", "--authorization-mode", "RBAC", "--token-auth-file", file("tokens.csv"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", file("sa.key"),
		"--service-account-signing-key-file", file("sa.key"),
		"--disable-admission-plugins", "ServiceAccount")) // nobody makes the default service account that pods need
	s.config = &rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", ports[2]), BearerToken: "admin", QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: file("pki/apiserver.crt")}}
	eventually(t, "the API server is ready", func() bool {
		if len(ended) > 0 {
			t.Fatal("the API server ended: ", printed(log))
		}
		if s.client, err = kubernetes.NewForConfig(s.config); err != nil { // it writes its certificate itself
			return false
		}
		got, err := s.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err == nil && string(got) == "ok"
	}, func() string { return printed(log) })
	if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "unthrottle"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// kubeconfig writes a file with the API server and a token of a service account; for a pod of the namespace, unless that is nil.
func (s *server) kubeconfig(t testing.TB, namespace, account string, of *core.Pod) (file string) {
	t.Helper()
	request := &authn.TokenRequest{}
	if of != nil {
		request.Spec.BoundObjectRef = &authn.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: of.Name, UID: of.UID}
	}
	got, err := s.client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: s.config.Host, CertificateAuthority: s.config.CAFile}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: got.Status.Token}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	file = filepath.Join(s.dir, "kubeconfig-"+account)
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	return file
}
