package realapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authn "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// binaries is the variable that names the folder with etcd and kube-apiserver.
const binaries = "UNTHROTTLE_KUBERNETES_BIN"

// adminToken is of a user that may do all.
const adminToken = "admin"

// server is an API server, and what it needs.
type server struct {
	t                       *testing.T
	dir, bin                string
	etcdPort, peerPort, api int
	process                 *process
	config                  *rest.Config
	client                  kubernetes.Interface
	objects                 dynamic.Interface
}

// process is one that ends with the test.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan error
}

// start runs a program; what it prints is in the file NAME.log of dir.
func start(t *testing.T, dir, name string, cmd *exec.Cmd) *process {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, log: log.Name(), done: make(chan error, 1)}
	go func() { p.done <- cmd.Wait() }()
	t.Cleanup(func() { p.end(syscall.SIGTERM) })
	return p
}

// end stops it, by force after a while. It may be called again.
func (p *process) end(signal syscall.Signal) error {
	if p.done == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(signal) // it may have ended
	var err error
	select {
	case err = <-p.done:
	case <-time.After(time.Minute):
		_ = p.cmd.Process.Kill()
		err = errors.Join(errors.New("it did not end within a minute"), <-p.done)
	}
	p.done = nil
	return err
}

// ended tells whether it ended by itself.
func (p *process) ended() bool {
	select {
	case err := <-p.done:
		p.done <- err
		return true
	default:
		return false
	}
}

// printed is what it printed so far.
func (p *process) printed() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// freePorts are ports of the loopback address that nobody listens on.
func freePorts(t *testing.T, n int) (ports []int) {
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

// eventually waits until a condition holds; why says what is there instead.
func eventually(t *testing.T, what string, holds func() bool, why func() string) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("after three minutes not: %s\n%s", what, why())
}

// newServer starts an API server with nothing in it.
func newServer(t *testing.T) *server {
	t.Helper()
	bin := os.Getenv(binaries)
	if bin == "" {
		t.Skipf("%s does not name a folder with etcd and kube-apiserver: make e2e-policies", binaries)
	}
	s := &server{t: t, dir: t.TempDir(), bin: bin}
	ports := freePorts(t, 3)
	s.etcdPort, s.peerPort, s.api = ports[0], ports[1], ports[2]
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	s.write("sa.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	s.write("sa.pub", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
	s.write("tokens.csv", adminToken+`,admin,admin,"system:masters"`+"\n")
	s.writeFront()
	etcd, peers := fmt.Sprintf("http://127.0.0.1:%d", s.etcdPort), fmt.Sprintf("http://127.0.0.1:%d", s.peerPort)
	start(t, s.dir, "etcd", exec.Command(filepath.Join(bin, "etcd"), "--name", "e", "--data-dir", s.file("etcd"),
		"--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", peers,
		"--initial-advertise-peer-urls", peers, "--initial-cluster", "e="+peers))
	s.startAPI()
	s.config = &rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", s.api), BearerToken: adminToken, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: s.file("pki/apiserver.crt")}}
	if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
		t.Fatal(err)
	}
	if s.objects, err = dynamic.NewForConfig(s.config); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"unthrottle", "shop-a", "shop-b", "batch"} {
		if _, err := s.client.CoreV1().Namespaces().Create(t.Context(),
			&core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *server) file(name string) string { return filepath.Join(s.dir, name) }

// write writes a file of the test's folder.
func (s *server) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.file(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// startAPI starts the API server, again if it was killed, and waits until it is ready.
func (s *server) startAPI() {
	s.t.Helper()
	s.process = start(s.t, s.dir, "apiserver", exec.Command(filepath.Join(s.bin, "kube-apiserver"), "--etcd-servers",
		fmt.Sprintf("http://127.0.0.1:%d", s.etcdPort),
		"--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(s.api), "--cert-dir", s.file("pki"),
		"--endpoint-reconciler-type", "none", "--advertise-address", "192.0.2.1", // to no one: it need not look for a route
		"--service-cluster-ip-range", "10.96.0.0/16", "--authorization-mode", "RBAC", "--token-auth-file", s.file("tokens.csv"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", s.file("sa.pub"),
		"--service-account-signing-key-file", s.file("sa.key"), "--requestheader-client-ca-file", s.file("front/ca.crt"),
		"--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group",
		"--requestheader-extra-headers-prefix", "X-Remote-Extra-", "--proxy-client-cert-file", s.file("front/tls.crt"),
		"--proxy-client-key-file", s.file("front/tls.key")))
	ready := func() bool {
		// The certificate is written by the API server itself.
		config := &rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", s.api), BearerToken: adminToken,
			TLSClientConfig: rest.TLSClientConfig{CAFile: s.file("pki/apiserver.crt")}}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return false
		}
		got, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(s.t.Context())
		return err == nil && string(got) == "ok"
	}
	eventually(s.t, "the API server is ready", func() bool { return s.process.ended() || ready() }, s.process.printed)
	if s.process.ended() {
		s.t.Fatal("the API server ended: ", s.process.printed())
	}
}

// manager starts kube-controller-manager with some of its controllers.
func (s *server) manager(controllers string, flags ...string) *process {
	s.t.Helper()
	return start(s.t, s.dir, "controller-manager", exec.Command(filepath.Join(s.bin, "kube-controller-manager"), append(flags,
		"--kubeconfig", s.kubeconfigAs("manager-kubeconfig", adminToken), "--leader-elect=false", "--controllers="+controllers,
		"--bind-address=127.0.0.1", "--secure-port="+fmt.Sprint(freePorts(s.t, 1)[0]), "--cert-dir", s.file("manager"))...))
}

// docs are the objects of a YAML text.
func docs(t *testing.T, text []byte) (given []*unstructured.Unstructured) {
	t.Helper()
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := d.Decode(&u.Object); errors.Is(err, io.EOF) {
			return given
		} else if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			given = append(given, u)
		}
	}
}

// golden are the objects of a golden file of the chart.
func golden(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "packaging", "chart", "golden", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return docs(t, text)
}

// of is where objects of this kind are.
func (s *server) of(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	groups, err := restmapper.GetAPIGroupResources(s.client.Discovery())
	if err != nil {
		return nil, err
	}
	kind := u.GroupVersionKind()
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	return s.objects.Resource(mapping.Resource).Namespace(u.GetNamespace()), nil
}

// create makes an object; a key that its schema does not know is an error, as with kubectl.
func (s *server) create(u *unstructured.Unstructured) error {
	resourceInterface, err := s.of(u)
	if err != nil {
		return err
	}
	_, err = resourceInterface.Create(s.t.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// install makes the objects of a golden file that are not there yet.
func (s *server) install(name string) {
	s.t.Helper()
	s.makes(name, golden(s.t, name))
}

// makes makes objects that are not there yet, and waits until definitions are served.
func (s *server) makes(name string, given []*unstructured.Unstructured) {
	s.t.Helper()
	for _, u := range given {
		if err := s.create(u); err != nil && !apierrors.IsAlreadyExists(err) {
			s.t.Fatalf("%s: %s %s: %v", name, u.GetKind(), u.GetName(), err)
		}
		if u.GetKind() != "CustomResourceDefinition" {
			continue
		}
		resourceInterface, err := s.of(u)
		if err != nil {
			s.t.Fatal(err)
		}
		said := ""
		eventually(s.t, u.GetName()+" is served", func() bool {
			now, err := resourceInterface.Get(s.t.Context(), u.GetName(), metav1.GetOptions{})
			if err != nil {
				said = err.Error()
				return false
			}
			said = fmt.Sprint(now.Object["status"])
			return strings.Contains(said, "type:Established") &&
				strings.Contains(said, "status:True type:Established") && !strings.Contains(said, "NonStructuralSchema")
		}, func() string { return said })
	}
}

// token is one of a service account, as the kubelet asks for it.
func (s *server) token(namespace, account string, audiences ...string) string {
	s.t.Helper()
	seconds := int64(3607)
	got, err := s.client.CoreV1().ServiceAccounts(namespace).CreateToken(s.t.Context(), account,
		&authn.TokenRequest{Spec: authn.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return got.Status.Token
}

// kubeconfig writes the file that names the API server and has a token.
func (s *server) kubeconfig(token string) string {
	s.t.Helper()
	return s.kubeconfigAs("kubeconfig", token)
}

// kubeconfigAs writes such a file under a name: for a program that may read it later.
func (s *server) kubeconfigAs(name, token string) string {
	s.t.Helper()
	file := s.file(name)
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: s.config.Host, CertificateAuthority: s.config.CAFile}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// program builds unthrottle-kubernetes.
func (s *server) program() string {
	s.t.Helper()
	file := s.file("unthrottle-kubernetes")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", file, "../cmd/unthrottle-kubernetes").CombinedOutput(); err != nil {
		s.t.Fatalf("go build: %v\n%s", err, out)
	}
	return file
}

// arguments are those of a container of the chart's DaemonSet.
func arguments(t *testing.T, file, container string) []string {
	t.Helper()
	for _, u := range golden(t, file) {
		if u.GetKind() != "DaemonSet" {
			continue
		}
		for _, list := range []string{"initContainers", "containers"} {
			all, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", list)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				if c := c.(map[string]any); c["name"] == container {
					args, _, err := unstructured.NestedStringSlice(c, "args")
					if err != nil {
						t.Fatal(err)
					}
					return args
				}
			}
		}
	}
	t.Fatalf("the DaemonSet of %s has no container %s", file, container)
	return nil
}

// chartFile is the agent's own file, as the chart writes it.
func chartFile(t *testing.T, from string) string {
	t.Helper()
	for _, u := range golden(t, from) {
		if u.GetKind() == "ConfigMap" {
			text, _, err := unstructured.NestedString(u.Object, "data", "unthrottle.yaml")
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
	}
	t.Fatal("the chart has no ConfigMap")
	return ""
}
